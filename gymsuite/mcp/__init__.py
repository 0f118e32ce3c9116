"""Environments as MCP servers, and MCP servers as toolsets: the only door to the mcp package."""
