"""MCP servers: configuration, sessions and their bounds."""
