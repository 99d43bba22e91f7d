"""The one resolver of symbols: many spellings in, one canonical spelling out, never a guess."""

from __future__ import annotations

import re

__all__ = ["QUOTES", "UnknownSymbolError", "pair"]

QUOTES = (
    "USD", "USDT", "USDC", "EUR", "GBP", "JPY", "CHF", "AUD", "CAD", "NZD", "BTC", "ETH",
)  # fmt: skip
"""Currencies that a compact spelling such as BTCUSD may end in."""

_PAIR = re.compile(r"[A-Z0-9]{1,15}/[A-Z0-9]{2,10}")
_LONGEST = 40


class UnknownSymbolError(ValueError):
    """Not a symbol, or several. `candidates` are the readings there are."""

    def __init__(self, message: str, tried: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.tried = tried
        self.candidates = candidates


def pair(text: str) -> str:
    """`btc/usd`, `BTC-USD`, `BTC_USD` and `BTCUSD` are all `BTC/USD`."""
    tried = text[:_LONGEST].strip().upper().replace("-", "/").replace("_", "/")
    if len(text) > _LONGEST:
        raise UnknownSymbolError("is too long to be a trading pair such as BTC/USD", tried)
    if text.isascii() and _PAIR.fullmatch(tried):  # upper() makes SS of ß
        return tried
    readings = tuple(
        f"{tried[: -len(quote)]}/{quote}"
        for quote in QUOTES
        if text.isascii() and tried.isalnum() and tried.endswith(quote) and len(tried) > len(quote)
    )
    if len(readings) == 1:
        return readings[0]
    if readings:
        raise UnknownSymbolError(f"could be {' or '.join(readings)}; write one of them", tried, readings)
    raise UnknownSymbolError("is not a trading pair such as BTC/USD", tried)
