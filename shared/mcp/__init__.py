"""MCP servers: where they are configured, and the sessions with them, bounded, that come back by themselves."""
