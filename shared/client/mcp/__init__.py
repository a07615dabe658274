"""The cluster as an MCP server: what the gateways that speak the protocol mount."""
