"""What the name of a file says of the bars in it, and what a file of bars is called."""

from __future__ import annotations

import re
from pathlib import Path

from quantdeck.collectors.bar_files import FileProblem
from quantdeck.domain.symbols import UnknownSymbolError, instrument
from quantdeck.domain.timeframes import Timeframe

__all__ = ["file_of", "symbol_of_file"]

_ENDINGS = {".csv", ".txt", ".tsv", ".gz", ".parquet", ".pq", ".demo", ".data", ".us"}
_NO_SYMBOL = re.compile(
    r"(\d+|m\d{1,3}|h\d{1,2}|d1|\d+(s|m|h|d|t|min|mins|minute|minutes|hour|hours|day|days)|minute|hourly|hour|daily|"
    r"day|d|bars|ohlcv?|candles|klines?|history|historical|data|prices?|spot|max|stock|crypto)",
    re.IGNORECASE,
)


def symbol_of_file(path: Path) -> str:
    """The symbol that a file is called by: `BTCUSDT-1m-2024-01.csv`, `aapl.us.txt`, `EUR_USD_1h.csv`."""
    stem = path.name
    while Path(stem).suffix.lower() in _ENDINGS:
        stem = Path(stem).stem
    words = re.split(r"[-_ .,]+", stem)
    while words and (not words[-1] or _NO_SYMBOL.fullmatch(words[-1])):
        words.pop()
    tried = "/".join(words)
    try:
        return instrument(tried)
    except UnknownSymbolError as error:
        raise FileProblem(
            "has a name from which no symbol can be told; say it with --symbol, such as --symbol BTC/USD"
        ) from error


def file_of(symbol: str, timeframe: Timeframe, ending: str) -> str:
    """A name that says what is in it, and from which `symbol_of_file` tells the symbol."""
    plain = re.sub(r"[^A-Za-z0-9.=^]+", "_", symbol)
    return f"{plain}_{timeframe}{ending}"
