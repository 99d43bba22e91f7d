"""The port `fills`: what orders came to, from which is learnt what size costs."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from typing import ClassVar, NamedTuple

from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.execution import Fill

__all__ = ["Fills", "NewFill"]


class NewFill(NamedTuple):
    """A fill as it is written. One of an id that is there already is the same one."""

    fill_id: str
    account_id: str
    symbol: str
    side: str
    size: float
    price: float
    mid_price: float | None
    filled_at: datetime
    created_at: datetime


class Fills(Source):
    """See the module."""

    port: ClassVar[str] = "fills"

    @abstractmethod
    async def newest(self, symbol: str, *, as_of: Now) -> list[Fill]:
        """The newest fills of a symbol whose market is known; kept ones may lack the last minutes'."""

    @abstractmethod
    async def add(self, fill: NewFill) -> bool:
        """Write one; whether it was new."""
