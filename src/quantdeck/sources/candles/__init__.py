"""The port `candles`: bars of every symbol, each series stored once, at a length of its own.

An adapter is a subclass that reads and writes bars of the length at which a series is stored. What is asked at a
coarser length is derived here, by `domain.candles.resampled` and nothing else, and so is the as-of barrier: a bar is
known at its close, so one that closes after the instant is in no answer.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.core.errors import QueryFailed
from quantdeck.domain.candles import Bars, closed_before, faults, joined, resampled, settled
from quantdeck.domain.timeframes import FinerThanStored, Timeframe

__all__ = ["Candles", "Series"]

T = TypeVar("T")

_LARGE = 20_000
"""Bars that take so long to derive from that the event loop must not wait for it."""

_FIRST_GUESS, _FEWEST = 1.05, 64
"""How much more than a series without gaps would need is read first, and how many bars at least."""


@dataclass(frozen=True, slots=True)
class Series:
    """What is stored of a symbol: the length of its bars, and the opens of the first and the last of them."""

    symbol: str
    base: Timeframe
    first_s: int
    last_s: int


class Candles(Source):
    """See the module. Symbols are in canonical spelling; bars ascend in time."""

    port = "candles"

    async def symbols(self, *, as_of: Now) -> list[str]:
        """Every symbol of which a bar had closed by then, in order."""
        return sorted([found.symbol for found in await self._all() if self._begun(found, as_of)])

    async def series(self, symbol: str, *, as_of: Now) -> Series | None:
        """What there was of a symbol by then; None where no bar had closed yet."""
        found = await self._series(symbol)
        if found is None or not self._begun(found, as_of):
            return None
        newest = await self._before(found, closed_before(self._known_until(symbol, as_of), found.base), 1)
        return Series(symbol, found.base, found.first_s, int(newest.time[-1])) if len(newest) else None

    async def between(self, symbol: str, timeframe: Timeframe, start: datetime, end: datetime, *, as_of: Now) -> Bars:
        """The closed bars that open at or after the start and before the end."""
        found = await self._readable(symbol, timeframe, as_of)
        if found is None:
            return Bars.none()
        start_s = timeframe.ceil(start.timestamp())
        end_s = min(timeframe.ceil(end.timestamp()), closed_before(self._known_until(symbol, as_of), timeframe))
        return await self._derived(found, timeframe, start_s, end_s)

    async def newest(self, symbol: str, timeframe: Timeframe, count: int, *, skip: int = 0, as_of: Now) -> Bars:
        """The last `count` closed bars before the last `skip`; fewer where the series began later."""
        found = await self._readable(symbol, timeframe, as_of)
        if found is None:
            return Bars.none()
        end_s = closed_before(self._known_until(symbol, as_of), timeframe)
        wanted = count + skip
        if timeframe == found.base:
            bars = await self._before(found, end_s, wanted)
        else:
            bars = await self._derived_before(found, timeframe, end_s, wanted)
        end = max(len(bars) - skip, 0)
        return bars[max(end - count, 0) : end]

    async def count(self, symbol: str, timeframe: Timeframe, *, as_of: Now) -> int:
        """How many closed bars there are, as far back as this store looks."""
        found = await self._readable(symbol, timeframe, as_of)
        return (
            0
            if found is None
            else await self._counted(found, timeframe, closed_before(self._known_until(symbol, as_of), timeframe))
        )

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        """Reads in here agree, where the store can make them."""
        return _nothing_held()

    async def write(self, symbol: str, base: Timeframe, bars: Bars) -> int:
        """Store bars; one that is there already is replaced, and of several with one open the last counts. How many.

        Raises where the series has bars of another length, and ValueError for bars that nobody should have let pass.
        """
        if wrong := faults(bars, base):
            raise ValueError(f"bars of {symbol} that cannot be stored: {', '.join(wrong)}")
        found = await self._series(symbol)
        if found is not None and found.base != base:
            raise QueryFailed(
                f"{symbol} is stored in bars of {found.base}, so it cannot take bars of {base} as well",
                source=self.source,
                stored=found.base.name,
            )
        tidy = settled(bars)
        if len(tidy):
            await self._write(symbol, base, tidy)
        return len(tidy)

    @abstractmethod
    async def forget(self, symbol: str) -> None:
        """Remove a symbol's series, so that another may take its place."""

    # What an adapter supplies. Each raises our errors only; times are opens, in seconds.

    @abstractmethod
    async def _all(self) -> list[Series]:
        """Every series."""

    @abstractmethod
    async def _series(self, symbol: str) -> Series | None:
        """The series of a symbol, whenever its bars became known."""

    @abstractmethod
    async def _between(self, series: Series, start_s: int, end_s: int) -> Bars:
        """Bars as they are stored, from the start to before the end."""

    @abstractmethod
    async def _before(self, series: Series, end_s: int, count: int) -> Bars:
        """The last `count` bars, as they are stored, that open before the end."""

    @abstractmethod
    async def _counted(self, series: Series, timeframe: Timeframe, end_s: int) -> int:
        """How many bars of a length there are before the end, as far back as this store looks."""

    @abstractmethod
    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        """Store bars that are sound and in order, all or none; the last version of a bar stays."""

    def _known_until(self, symbol: str, as_of: Now) -> float:
        """Up to when bars had become known: the instant itself, but for a feed that is always late."""
        return as_of.timestamp()

    # What they share.

    def _begun(self, series: Series, as_of: Now) -> bool:
        return series.first_s + series.base.seconds <= self._known_until(series.symbol, as_of)

    async def _readable(self, symbol: str, timeframe: Timeframe, as_of: Now) -> Series | None:
        found = await self._series(symbol)
        if found is None or not self._begun(found, as_of):
            return None
        if not timeframe.is_made_of(found.base):
            raise FinerThanStored(symbol, timeframe, found.base)
        return found

    async def _derived(self, series: Series, timeframe: Timeframe, start_s: int, end_s: int) -> Bars:
        """Bars of a length between two of its opens; an adapter whose engine derives faster, and alike, may do so."""
        if start_s >= end_s:
            return Bars.none()
        bars = await self._between(series, start_s, end_s)
        if timeframe == series.base:
            return bars
        return await _off_the_loop(len(bars), lambda: resampled(bars, timeframe))

    async def _derived_before(self, series: Series, timeframe: Timeframe, end_s: int, count: int) -> Bars:
        """Read back, ever further, until there are enough: how many gaps there are is not known before."""
        parts: list[Bars] = []
        have, reach_s = 0, round(max(count * _FIRST_GUESS, 1)) * timeframe.seconds
        reach_s = max(reach_s, _FEWEST * series.base.seconds)
        first_s = timeframe.floor(series.first_s)
        while have < count and end_s > first_s:
            start_s = max(timeframe.floor(end_s - reach_s), first_s)
            part = await self._derived(series, timeframe, start_s, end_s)
            parts.insert(0, part)
            have += len(part)
            end_s, reach_s = start_s, 2 * reach_s
        return joined(parts)[max(have - count, 0) :]


async def _off_the_loop(size: int, work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work) if size > _LARGE else work()


@asynccontextmanager
async def _nothing_held() -> AsyncIterator[None]:
    yield
