"""`python -m gateways.cli` is the command line where `promptdock` is not installed."""

from gateways.cli.main import main

if __name__ == "__main__":
    main()
