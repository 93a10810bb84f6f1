"""The tools for programs that speak over a pipe: JSON lines and MCP."""
