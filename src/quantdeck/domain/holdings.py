"""What is held: what it is worth and what it has earned, in the currency of its account."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import Literal, NamedTuple

from quantdeck.domain.exact import exact

__all__ = ["Holding", "HoldingSide", "gain", "in_currency", "worth"]

HoldingSide = Literal["LONG", "SHORT"]

_AT_PAR = frozenset({"USD", "USDT", "USDC"})
"""One is as good as another: an account in USD trades what is quoted in USDT."""


class Holding(NamedTuple):
    """An open position, or one of several of the same symbol. `price` is None where nobody has told one."""

    symbol: str
    side: HoldingSide
    size: float
    entry_price: float
    price: float | None

    @property
    def gained(self) -> float | None:
        """What it would earn if it were closed now, in the currency that it is quoted in."""
        return None if self.price is None else gain(self.side, self.size, self.entry_price, self.price)

    def gained_in(self, currency: str) -> float | None:
        """The same in the account's currency; None too where its rate is not known."""
        return None if self.price is None else in_currency(self.gained, self.symbol, self.price, currency)


@lru_cache(maxsize=4096)  # a book is asked about many times between two of its prices
def gain(side: HoldingSide, size: float, entry_price: float, price: float) -> float | None:
    """A gain, or below 0 a loss; None where it is beyond any number."""
    rise = exact(price) - exact(entry_price)
    earned = float((rise if side == "LONG" else -rise) * exact(size))
    return earned if isfinite(earned) else None


def worth(symbol: str, price: float, currency: str) -> float | None:
    """What one unit of the pair's base is worth in `currency`; None where its rate to it is not known."""
    if _part(symbol, currency) == "quote":
        return price
    return 1.0 if _part(symbol, currency) == "base" else None


@lru_cache(maxsize=4096)
def _part(symbol: str, currency: str) -> str:
    """Which part of the pair is the currency, or as good as it."""
    base, _, quote = symbol.partition("/")
    if _same(quote, currency):
        return "quote"
    return "base" if _same(base, currency) else ""


def in_currency(amount: float | None, symbol: str, price: float, currency: str) -> float | None:
    """An amount of the pair's quote currency."""
    unit = worth(symbol, price, currency)
    if amount is None or unit is None:
        return None
    return amount if unit == price else amount / price


def _same(one: str, other: str) -> bool:
    return one == other or {one, other} <= _AT_PAR
