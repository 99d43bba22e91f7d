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
from typing import TYPE_CHECKING, Self, TypeVar

from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.core.errors import QueryFailed
from quantdeck.domain.candles import Bars, closed_before, faults, joined, resampled, settled
from quantdeck.domain.timeframes import FinerThanStored, Timeframe

if TYPE_CHECKING:
    from quantdeck.core.call import Call

__all__ = ["Candles", "Series", "Storage", "is_storable", "off_the_loop"]

T = TypeVar("T")

_LARGE = 20_000
"""Bars that take so long to derive from that the event loop must not wait for it."""

_FIRST_GUESS, _FEWEST = 1.05, 64
"""How much more than a series without gaps would need is read first, and how many bars at least."""

LONGEST_SYMBOL = 64


@dataclass(frozen=True, slots=True)
class Series:
    """What is stored of a symbol: the length of its bars, and the opens of the first and the last of them."""

    symbol: str
    base: Timeframe
    first_s: int
    last_s: int


@dataclass(frozen=True, slots=True)
class Storage:
    """Where bars are, in words for people, and how much room they take; 0 where nothing here holds them."""

    place: str
    size_bytes: int = 0


class Candles(Source):
    """See the module. Symbols are in canonical spelling; bars ascend in time."""

    port = "candles"

    @classmethod
    def from_call(cls, call: Call) -> Self:
        """The store; or a view of it for this call, whose answer names the one of several that was asked.

        That is where the answer is of bars first of all; a backtest's names who ran it.
        """
        opened = super().from_call(call)
        view = getattr(opened, "_for_call", None) if call.contract.sources[0] is cls else None
        return opened if view is None else view(call)

    async def symbols(self, *, as_of: Now) -> list[str]:
        """Every symbol of which a bar had closed by then, in order."""
        return sorted([found.symbol for found in await self._all() if self._has_begun(found, as_of)])

    async def series(self, symbol: str, *, as_of: Now) -> Series | None:
        """What there was of a symbol by then; None where no bar had closed yet."""
        found = await self._begun(symbol, as_of)
        if found is None:
            return None
        end_s, last_s = self._closed_before(symbol, found.base, as_of), found.last_s
        if last_s >= end_s:
            newest = await self._before(found, end_s, 1)
            if not len(newest):
                return None
            last_s = int(newest.time[-1])
        return Series(symbol, found.base, found.first_s, last_s)

    async def between(self, symbol: str, timeframe: Timeframe, start: datetime, end: datetime, *, as_of: Now) -> Bars:
        """The closed bars that open at or after the start and before the end; both have an offset from UTC."""
        start_s, end_s = timeframe.ceil(_instant(start)), timeframe.ceil(_instant(end))
        found = await self._readable(symbol, timeframe, as_of)
        if found is None:
            return Bars.none()
        end_s = min(end_s, self._closed_before(symbol, timeframe, as_of))
        return await self._derived(found, timeframe, start_s, end_s)

    async def newest(self, symbol: str, timeframe: Timeframe, count: int, *, skip: int = 0, as_of: Now) -> Bars:
        """The last `count` closed bars before the last `skip`; fewer where the series began later."""
        if count < 0 or skip < 0:
            raise ValueError(f"{count} bars before the last {skip} cannot be: neither may be negative")
        found = await self._readable(symbol, timeframe, as_of)
        if found is None or not count:
            return Bars.none()
        return await self._page(found, timeframe, self._closed_before(symbol, timeframe, as_of), count, skip)

    async def page(
        self, symbol: str, timeframe: Timeframe, count: int, *, skip: int = 0, as_of: Now
    ) -> tuple[Bars, int]:
        """What `newest` and `count` answer, of one and the same series."""
        found = await self._readable(symbol, timeframe, as_of)
        if found is None:
            return Bars.none(), 0
        end_s = self._closed_before(symbol, timeframe, as_of)
        return await self._page(found, timeframe, end_s, count, skip), await self._counted(found, timeframe, end_s)

    async def count(self, symbol: str, timeframe: Timeframe, *, as_of: Now) -> int:
        """How many closed bars there are, as far back as this store looks."""
        found = await self._readable(symbol, timeframe, as_of)
        return (
            0 if found is None else await self._counted(found, timeframe, self._closed_before(symbol, timeframe, as_of))
        )

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        """Reads in here agree, where the store can make them; nothing is written in here."""
        return _nothing_held()

    async def write(self, symbol: str, base: Timeframe, bars: Bars) -> int:
        """Store bars; one that is there already is replaced, and of several with one open the last counts. How many.

        Raises where the series has bars of another length, and ValueError for bars that nobody should have let pass.
        """
        if not is_storable(symbol):
            raise ValueError(f"{symbol[:LONGEST_SYMBOL]!r} is no name of a series")
        if wrong := await off_the_loop(len(bars), lambda: faults(bars, base)):
            raise ValueError(f"bars of {symbol} that cannot be stored: {', '.join(wrong)}")
        tidy = await off_the_loop(len(bars), lambda: settled(bars))
        found = await self._series(symbol)
        if found is not None:
            self._check_base(found, base)
        if len(tidy):
            await self._write(symbol, base, tidy)
        return len(tidy)

    async def store_of(self, symbol: str, *, as_of: Now) -> Candles:
        """The store that a symbol is read from, where several are behind one; its `source` is the true one."""
        return self

    async def storage(self, *, as_of: Now) -> Storage:
        """Where the bars are that had become known by then; also where there are none yet."""
        return Storage(self.source)

    @abstractmethod
    async def forget(self, symbol: str) -> None:
        """Remove a symbol's series, so that another may take its place; nothing where there is none."""

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

    def _closed_before(self, symbol: str, timeframe: Timeframe, as_of: Now) -> int:
        return closed_before(self._known_until(symbol, as_of), timeframe)

    def _has_begun(self, series: Series, as_of: Now) -> bool:
        return series.first_s + series.base.seconds <= self._known_until(series.symbol, as_of)

    async def _begun(self, symbol: str, as_of: Now) -> Series | None:
        """The series, if a bar of it had closed by then. A name that can be nobody's reaches no store."""
        found = await self._series(symbol) if is_storable(symbol) else None
        return found if found is not None and self._has_begun(found, as_of) else None

    async def _readable(self, symbol: str, timeframe: Timeframe, as_of: Now) -> Series | None:
        found = await self._begun(symbol, as_of)
        if found is None:
            return None
        if not timeframe.is_made_of(found.base):
            raise FinerThanStored(symbol, timeframe, found.base)
        return found

    def _check_base(self, series: Series, base: Timeframe) -> None:
        """Refuse a second length. A store that others write too asks again where nobody can come between."""
        if series.base != base:
            raise QueryFailed(
                f"{series.symbol} is stored in bars of {series.base}, so it cannot take bars of {base} as well",
                source=self.source,
                stored=series.base.name,
            )

    async def _page(self, series: Series, timeframe: Timeframe, end_s: int, count: int, skip: int) -> Bars:
        """The last `count` before the last `skip` before the end; a store that can skip without reading may do so."""
        if timeframe == series.base:
            bars = await self._before(series, end_s, count + skip)
        else:
            bars = await self._derived_before(series, timeframe, end_s, count + skip)
        end = max(len(bars) - skip, 0)
        return bars[max(end - count, 0) : end]

    async def _derived(self, series: Series, timeframe: Timeframe, start_s: int, end_s: int) -> Bars:
        """Bars of a length between two of its opens; an adapter whose engine derives faster, and alike, may do so."""
        if start_s >= end_s:
            return Bars.none()
        bars = await self._between(series, start_s, end_s)
        if timeframe == series.base:
            return bars
        return await off_the_loop(len(bars), lambda: resampled(bars, timeframe))

    async def _derived_before(self, series: Series, timeframe: Timeframe, end_s: int, count: int) -> Bars:
        """Read back, ever further, until there are enough: how many gaps there are is not known before."""
        parts: list[Bars] = []
        have, reach_s = 0, round(max(count * _FIRST_GUESS, 1)) * timeframe.seconds
        reach_s = max(reach_s, _FEWEST * series.base.seconds)
        first_s = timeframe.floor(series.first_s)
        # It may have ended long ago, and nobody wants to look through what came after.
        end_s = min(end_s, timeframe.floor(series.last_s) + timeframe.seconds)
        while have < count and end_s > first_s:
            start_s = max(timeframe.floor(end_s - reach_s), first_s)
            part = await self._derived(series, timeframe, start_s, end_s)
            parts.insert(0, part)
            have += len(part)
            end_s, reach_s = start_s, 2 * reach_s
        return joined(parts)[max(have - count, 0) :]


def is_storable(symbol: str) -> bool:
    """Whether a series can have this name: short, printable, no blanks around it."""
    return 0 < len(symbol) <= LONGEST_SYMBOL and symbol.isprintable() and symbol == symbol.strip()


def _instant(at: datetime) -> float:
    if at.tzinfo is None:
        raise ValueError("an instant has an offset from UTC; this machine's own must not decide")
    return at.timestamp()


async def off_the_loop(size: int, work: Callable[[], T]) -> T:
    """Work on that many bars; on a thread where it would hold up everybody else."""
    return await asyncio.to_thread(work) if size > _LARGE else work()


@asynccontextmanager
async def _nothing_held() -> AsyncIterator[None]:
    yield
