"""The collector: a feed of stocks and one of coins, one memory, one store."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from quantdeck.collectors.alpaca.feed import Feed, Hopeless
from quantdeck.collectors.alpaca.filling import Gap
from quantdeck.collectors.alpaca.memory import Memory
from quantdeck.collectors.alpaca.owed import Owed
from quantdeck.connections.alpaca import AlpacaApi
from quantdeck.core.clock import Clock
from quantdeck.core.errors import NotConfigured, SourceError
from quantdeck.domain.arrays import np
from quantdeck.domain.candles import Bars, faults
from quantdeck.domain.timeframes import MINUTE
from quantdeck.domain.watchlist import Watchlist, is_crypto
from quantdeck.settings import Alpaca as Settings
from quantdeck.sources.candles import Candles, Series

__all__ = ["Collector", "Hopeless"]

log = logging.getLogger(__name__)

_OVERLAP_S = 10 * 60
"""So much is asked for again after a break: the newest bars may have been corrected meanwhile."""
_PATIENCE_S = 65.0
"""For a refusal for asking too often, which lasts a minute at most."""
_DAY_S = 86_400


class Collector:
    """Everything between Alpaca and a store. Enter `run` for as long as it shall collect, or `fill` once."""

    def __init__(self, settings: Settings, store: Candles, owed: Owed, *, days: int) -> None:
        self.store = store
        self.memory = Memory()
        self.owed = owed
        self.api = AlpacaApi(settings, patience_s=_PATIENCE_S)
        self.feeds = {coins: Feed(self, settings, coins=coins) for coins in (False, True)}
        self.flushed_at: float | None = None
        self.written = 0
        self._settings = settings
        self._days = days
        self._clock = Clock()
        self._known: dict[str, int] = {}
        self._writing = asyncio.Lock()

    async def add(self, symbols: Sequence[str]) -> list[str]:
        """Collect these as well; what cannot be, each with the reason."""
        problems = []
        for symbol in symbols:
            if found := await self.look_up([symbol]):
                problems += found
            else:
                self.feeds[is_crypto(symbol)].add(symbol)
        return problems

    async def look_up(self, symbols: Sequence[str]) -> list[str]:
        """Learn what the store has of these so far; why it cannot take bars of one, each with the reason."""
        problems = []
        for symbol in symbols:
            there = None if symbol in self._known else await self._series(symbol)
            if there is None:
                continue
            if there.base == MINUTE:
                self._known[symbol] = there.last_s
            else:
                problems.append(f"{symbol} is stored in bars of {there.base}, so bars of a minute cannot come to it")
        return problems

    @property
    def watchlist(self) -> Watchlist:
        return Watchlist(*(tuple(self.feeds[coins].symbols) for coins in (False, True)))

    async def run(self) -> None:
        """Collect until cancelled; Hopeless where Alpaca refuses for good. What is in memory is written in the end."""
        over = list[BaseException]()
        try:
            async with asyncio.TaskGroup() as group:
                for feed in self.feeds.values():
                    group.create_task(feed.run())
                group.create_task(self._keep_flushing())
        except* Hopeless as hopeless:
            over += hopeless.exceptions
        finally:
            await asyncio.shield(self.flush())
        raise over[0]

    async def fill(self) -> None:
        """Fetch what is missing up to now, and no more. Raises a SourceError."""
        for feed in self.feeds.values():
            await feed.fill()

    async def close(self) -> None:
        await self.api.close()

    def hear(self, symbol: str, opened_s: int, row: tuple[float, float, float, float, float]) -> None:
        """A live bar."""
        gone = self.memory.put(symbol, opened_s, row)
        if gone is not None:
            self.owed.owe(symbol, gone)

    @property
    def available(self) -> list[str]:
        """Symbols of which there are bars."""
        return sorted({*self._known, *self.memory.newest})

    def newest(self, symbol: str) -> int:
        """The open of the newest bar that is stored or was heard; 0 for none."""
        return max(self._known.get(symbol, 0), self.memory.newest.get(symbol, 0))

    def gaps(self, symbols: Sequence[str], *, overlap_s: int = _OVERLAP_S) -> list[Gap]:
        """From when on each may lack bars or corrections, to the last minute that is over."""
        end_s = MINUTE.floor(self._clock.now().timestamp())
        return [Gap(symbol, self._since(symbol, end_s, overlap_s), end_s) for symbol in symbols]

    def _since(self, symbol: str, end_s: int, overlap_s: int = 0) -> int:
        known = self._known.get(symbol)
        since_s = end_s - self._days * _DAY_S if known is None else known + MINUTE.seconds - overlap_s
        return min(since_s, self.owed.since(symbol) or since_s)

    def owe(self, symbols: Sequence[str]) -> None:
        """A connection begins: until they are filled, a bar that it brings is no sign that all before it are there."""
        for gap in self.gaps(symbols):
            self.owed.owe(gap.symbol, gap.start_s)

    @contextmanager
    def owing(self, gaps: Sequence[Gap]) -> Iterator[None]:
        """While gaps are filled they stand on the disk; then nothing does of them, or where it was broken off."""
        for gap in gaps:
            self.owed.owe(gap.symbol, gap.start_s)
        self.owed.save()
        try:
            yield
        finally:
            for gap in gaps:
                self.owed.settle(gap.symbol)
            for gap in gaps:
                if gap.start_s < gap.end_s:
                    self.owed.owe(gap.symbol, gap.start_s)
            self.owed.save()

    async def earlier(self, symbols: Sequence[str]) -> list[Gap]:
        """What each lacks before its first bar, of the days that are wanted."""
        end_s = MINUTE.floor(self._clock.now().timestamp())
        begin_s, found = end_s - self._days * _DAY_S, []
        for symbol in symbols:
            if self._since(symbol, end_s) > begin_s:  # or it is asked for already
                there = await self._series(symbol)
                if there is not None and there.first_s > begin_s:
                    found.append(Gap(symbol, begin_s, there.first_s))
        return found

    async def keep(self, symbol: str, bars: Bars) -> None:
        """Store what REST said, but for what the stream has said later."""
        await self._write(symbol, self.memory.unheard(symbol, bars))

    async def flush(self) -> None:
        """Write what is in memory. What the store does not take stays there for the next time."""
        self.owed.save()
        taken = self.memory.take()
        try:
            for symbol in list(taken):
                try:
                    await self._write(symbol, taken[symbol])
                    del taken[symbol]
                except (SourceError, ValueError) as error:
                    told = {"symbol": symbol, "bars": len(taken[symbol]), "why": str(error)}
                    log.error("not_stored", extra={"fields": told})  # noqa: TRY400 - its sentence says it
        finally:
            for symbol, bars in taken.items():
                gone = self.memory.give_back(symbol, bars)
                if gone is not None:
                    self.owed.owe(symbol, gone)
        if not taken:
            self.flushed_at = time.time()

    async def _write(self, symbol: str, bars: Bars) -> None:
        if wrong := faults(bars, MINUTE):
            bad = np.logical_or.reduce(list(wrong.values()))
            told = {"symbol": symbol, "why": ", ".join(wrong), "bars": int(bad.sum())}
            log.warning("impossible_bars", extra={"fields": told})
            bars = Bars(*(column[~bad] for column in bars.columns()))
        if not len(bars):
            return
        async with self._writing:
            self.written += await self.store.write(symbol, MINUTE, bars)
        self._known[symbol] = max(self._known.get(symbol, 0), int(bars.time[-1]))

    async def _keep_flushing(self) -> None:
        """Soon after each minute, when its bars have come."""
        period_s = self._settings.flush_s
        while True:
            after_s = min(5.0, period_s / 10)
            await asyncio.sleep(period_s - (time.time() - after_s) % period_s)
            await self.flush()

    async def _series(self, symbol: str) -> Series | None:
        try:
            return await self.store.series(symbol, as_of=self._clock.now())
        except NotConfigured:  # a home without bars, which the first write gives it
            return None
