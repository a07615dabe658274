"""The console script; `python -m gateways.cli` is the command line where `promptdock` is not installed."""

import sys


def main() -> int:
    """Run the command. Who interrupts while it is still being loaded gets no traceback either."""
    try:
        from gateways.cli.main import main as command

        command()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
