"""What every peer serves. `typescript/server.mjs` repeats it; the client checks that all answer the same data.

Plain data and the standard library only: the import counts in the Python peers' cold start.
"""

from typing import Any

ARGUMENTS = {"symbol": "BTC/USD", "limit": 5}
ROW_COUNT = 400  # about 50 KB as compact JSON

QUERY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "symbol": {"type": "string", "description": "Instrument, such as BTC/USD."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "How many rows at most."},
    },
    "required": ["symbol", "limit"],
}
NOOP_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "symbol": {"type": "string"}},
    "required": ["ok", "symbol"],
}
ROWS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "symbol": {"type": "string"},
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "time": {"type": "integer"},
                    **{name: {"type": "number"} for name in ("open", "high", "low", "close", "volume")},
                    "trades": {"type": "integer"},
                    "venue": {"type": "string"},
                },
                "required": ["time", "open", "high", "low", "close", "volume", "trades", "venue"],
            },
        },
    },
    "required": ["symbol", "rows"],
}
FILLER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "symbol": {"type": "string", "description": "Instrument, such as BTC/USD."},
        "start": {"type": "string", "description": "First moment, ISO 8601 with an offset."},
        "end": {"type": "string", "description": "Moment after the last one, ISO 8601 with an offset."},
        "interval": {"enum": ["1m", "5m", "1h", "1d"], "default": "1h", "description": "Width of one bar."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "Rows at most."},
    },
    "required": ["symbol", "start", "end"],
}
FILLER_OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "symbol": {"type": "string"},
        "count": {"type": "integer"},
        "mean": {"type": "number"},
        "deviation": {"type": "number"},
    },
    "required": ["symbol", "count", "mean", "deviation"],
}


def noop_answer(symbol: str) -> dict[str, Any]:
    return {"ok": True, "symbol": symbol}


def _row(i: int) -> dict[str, Any]:
    cents = 6_500_000 + i * 37 % 10_007  # cents / 100 is the same double in Python and JavaScript
    return {
        "time": 1_763_424_000 + 60 * i,
        "open": cents / 100,
        "high": (cents + 1_250) / 100,
        "low": (cents - 1_175) / 100,
        "close": (cents + 325) / 100,
        "volume": (i * 7_919 % 100_000) / 1_000,
        "trades": i * 31 % 997,
        "venue": "exchange",
    }


_ROWS = [_row(i) for i in range(ROW_COUNT)]


def rows_answer(symbol: str) -> dict[str, Any]:
    """The same prebuilt rows on each call: making them is not what is measured, encoding them is."""
    return {"symbol": symbol, "rows": _ROWS}


def filler_names(tools: int) -> list[str]:
    return [f"summary_{i:02d}" for i in range(tools - 2)]


def describe_filler(name: str) -> str:
    return f"Summarise the bars of one instrument over a period ({name}). Times are UTC; the end is exclusive."
