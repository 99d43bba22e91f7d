"""Ten small MCP servers that give a trading agent data, strategies, backtests and memory."""

__version__ = "0.1.0"
