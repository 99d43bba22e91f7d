"""The measures, in the order they run. A new one is a module with `async def measure(quick: bool) -> Report`."""

NAMES = (
    "stdio", "http", "start", "desk", "candles", "events", "market", "backtest", "backtester", "pyth", "sweep",
    "chart", "collector", "state", "sandbox", "catalog",
)  # fmt: skip
