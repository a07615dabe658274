"""What each command does; `gateways/cli/app.py` imports the module of the one that was typed."""
