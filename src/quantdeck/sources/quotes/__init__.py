"""The port `quotes`: bid and ask as a market's own feed has them, where there is one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from quantdeck.core.clock import Now
from quantdeck.core.contract import Source

__all__ = ["FRESH_FOR", "Quote", "Quotes"]

FRESH_FOR = timedelta(seconds=60)
"""An older quote says nothing of the market as it is."""


@dataclass(frozen=True, slots=True)
class Quote:
    bid: float
    ask: float
    at: datetime

    @property
    def mid(self) -> float:
        return (self.bid + self.ask) / 2


class Quotes(Source):
    """See the module."""

    port: ClassVar[str] = "quotes"

    @abstractmethod
    async def latest(self, symbol: str, *, as_of: Now) -> Quote | None:
        """The last quote of a symbol, if it is fresh by then; None where there is none, or only a later one."""
