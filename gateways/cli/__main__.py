"""The console script; `python -m gateways.cli` is the command line where `promptdock` is not installed."""

import os
import sys


def main() -> int:
    """Run the command. Who interrupts while it is still being loaded gets no traceback either."""
    try:
        _open_streams()
        from gateways.cli.app import main as command

        return command()
    except KeyboardInterrupt:
        return 130


def _open_streams() -> None:
    """A stream that was closed leads nowhere, else the first file that is opened took its place.

    What the locale cannot write is written as an escape.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
