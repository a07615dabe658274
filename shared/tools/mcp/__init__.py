"""Tools of MCP servers: a category for each server, and tools for what servers have beside tools."""
