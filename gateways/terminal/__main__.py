"""`python -m gateways.terminal`: what `promptdock chat` becomes."""

from gateways.terminal.main import main

if __name__ == "__main__":
    main()
