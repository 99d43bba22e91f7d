"""The one resolver of symbols: many spellings in, one canonical spelling out, never a guess."""

from __future__ import annotations

import re
from typing import Literal

__all__ = [
    "CRYPTO_NAMES",
    "QUOTES",
    "AssetClass",
    "UnknownSymbolError",
    "asset_class",
    "instrument",
    "pair",
    "pair_or_ticker",
]

AssetClass = Literal["stock", "crypto", "fx", "metal"]

QUOTES = (
    "USD", "USDT", "USDC", "EUR", "GBP", "JPY", "CHF", "AUD", "CAD", "NZD", "BTC", "ETH",
)  # fmt: skip
"""Currencies that a compact spelling such as BTCUSD may end in."""

CRYPTO_NAMES = ("BTC", "ETH", "DOGE", "SHIB")
"""Coins that go by their name alone. LTC, BCH, UNI, LINK and SOL do not: there are, or were, stocks of these names."""

_MONEY = frozenset((
    "USD", "EUR", "GBP", "JPY", "CHF", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "ISK", "PLN", "CZK", "HUF", "RON",
    "TRY", "ILS", "ZAR", "MXN", "BRL", "CLP", "COP", "PEN", "ARS", "CNY", "CNH", "HKD", "SGD", "KRW", "TWD", "INR",
    "IDR", "MYR", "PHP", "THB", "VND", "AED", "SAR", "RUB",
))  # fmt: skip
_METALS = frozenset(("XAU", "XAG", "XPT", "XPD"))

_TICKER = re.compile(r"[A-Z]{1,5}")
_SHARE_CLASS = re.compile(r"([A-Z]{1,5})[./]([A-Z])")
_PAIR = re.compile(r"[A-Z0-9]{1,15}/[A-Z0-9]{2,10}")
_LONGEST = 40


class UnknownSymbolError(ValueError):
    """Not a symbol, or several. `candidates` are the readings there are."""

    def __init__(self, message: str, tried: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.tried = tried
        self.candidates = candidates


def instrument(text: str) -> str:
    """Anything that is traded: a pair as `pair` reads it, or a stock or fund such as `AAPL` or `BRK.B`.

    One to five letters are a ticker, and nothing else: `LTC` is the stock, `LTC/USD` the coin. Only `CRYPTO_NAMES`
    mean the coin in dollars. A single letter behind a separator is a class of shares, so `BRK-B` is `BRK.B`. Six
    letters of two currencies are their pair also where the second is no usual quote, so `USDSEK` is `USD/SEK`.
    """
    tried = text[:_LONGEST].strip().upper().replace("-", "/").replace("_", "/")
    if text.isascii() and len(text) <= _LONGEST:
        if tried in CRYPTO_NAMES:
            return f"{tried}/USD"
        if _TICKER.fullmatch(tried):
            return tried
        if shares := _SHARE_CLASS.fullmatch(tried):
            return f"{shares[1]}.{shares[2]}"
        if len(tried) == 6 and tried[3:] in _MONEY and tried[:3] in _MONEY | _METALS:
            return f"{tried[:3]}/{tried[3:]}"
    try:
        return pair(text)
    except UnknownSymbolError as error:
        if error.candidates or len(text) > _LONGEST:
            raise
        raise UnknownSymbolError(
            "is neither a trading pair such as BTC/USD nor a stock such as AAPL", error.tried
        ) from None


def pair_or_ticker(text: str) -> str:
    """A pair as `pair` reads it, or a stock or fund; here a coin's name alone is half a pair."""
    try:
        return pair(text)
    except UnknownSymbolError:
        try:
            ticker = instrument(text)
        except UnknownSymbolError:
            ticker = "/"
        if "/" in ticker:
            raise
        return ticker


def asset_class(symbol: str) -> AssetClass:
    """What a symbol in its canonical spelling is. A pair that is neither of currencies nor of a metal is crypto."""
    base, slash, quote = symbol.partition("/")
    if not slash:
        return "stock"
    if quote in _MONEY and base in _MONEY:
        return "fx"
    return "metal" if base in _METALS and quote in _MONEY | _METALS else "crypto"


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
