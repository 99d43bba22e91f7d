"""What a tool is. Knows no server, no driver and no MCP."""
