"""`python -m gateways.mcp`: what `promptdock mcp serve` becomes."""

from gateways.mcp.main import main

if __name__ == "__main__":
    main()
