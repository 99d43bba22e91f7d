"""The port `positions`: what an account holds, as whoever tracks it has it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.sources.fills import NewFill

__all__ = ["Positions", "Tracked"]


@dataclass(frozen=True, slots=True)
class Tracked:
    """What is held of one symbol. A short is below 0; the price is the last that was told, if one was."""

    symbol: str
    quantity: float
    price: float | None


class Positions(Source):
    """See the module."""

    port: ClassVar[str] = "positions"

    @abstractmethod
    async def held(self, account: str, *, as_of: Now) -> list[Tracked]:
        """Every symbol that is held, in order; none for an account of which nothing is known.

        At a fixed instant positions that were changed later are refused: what they were is gone.
        """

    async def follow(self, told: Callable[[NewFill], Awaitable[Any]]) -> None:
        """Keep positions up by published fills, each of which is told of; returns where others keep them up."""
        del told

    @abstractmethod
    async def revision(self) -> Any:
        """Another one as soon as any position is; asked before each check, so that none is held against an old one."""
