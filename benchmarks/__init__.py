"""Speed of quantdeck's MCP servers next to other servers: `python -m benchmarks [NAME…] [--quick]`."""
