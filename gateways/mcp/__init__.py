"""The cluster as an MCP server over stdio: `promptdock mcp serve`."""
