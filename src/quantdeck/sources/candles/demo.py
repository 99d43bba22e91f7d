"""The demo market's candles: computed, never stored; any day is as quick as any other, the world always at the present.

Served only where the home is marked as a demo world; app chooses it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import orjson

from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured, QueryFailed, Unreachable
from quantdeck.domain.arrays import np
from quantdeck.domain.candles import Bars, joined
from quantdeck.domain.demo_instruments import INSTRUMENTS, Instrument
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.timeframes import MINUTE, Timeframe
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles, Series

__all__ = ["DemoCandles", "connect"]

BEGAN_S = 1_577_836_800
"""2020-01-01: no bar is older."""
ENDS_S = 4_102_444_800
"""2100-01-01. Until its own time has come, the as-of barrier keeps each bar out of every answer."""


def connect(url: str, settings: Settings, databases: Databases) -> DemoCandles:
    """The adapter, of the world that the home is marked as."""
    del url, databases
    if not settings.is_demo:
        raise NotConfigured(
            "No demo world: this home is not marked as one. Make it with `quantdeck demo`, or set QUANTDECK_CANDLES",
            source="demo",
            setting="QUANTDECK_CANDLES",
        )
    return DemoCandles(_Marked(settings))


class _Marked:
    """The world that a home is marked as, looked at anew each time: one that was made again is another."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen: tuple[int, int] | None = None
        self._market: DemoMarket | None = None

    def __call__(self) -> DemoMarket:
        if self._settings.is_unfinished_demo:
            raise Unreachable(
                "No connection to the demo market: its world is not finished. Where nobody is making it just now, run "
                "`quantdeck demo` again",
                source="demo",
            )
        try:
            mark = self._settings.demo_mark.stat()
            if self._market is None or (mark.st_ino, mark.st_mtime_ns) != self._seen:
                seed = orjson.loads(self._settings.demo_mark.read_bytes())["seed"]
                self._seen, self._market = (mark.st_ino, mark.st_mtime_ns), DemoMarket(seed, shape_of)
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise Unreachable(
                "No connection to the demo market: this home is a demo world no more. Make it one again with "
                "`quantdeck demo`, or restart this server",
                source="demo",
            ) from error
        return self._market


class DemoCandles(Candles):
    """See the port. `world` gives the market as it is now; each read asks once."""

    source = "demo"

    def __init__(self, world: Callable[[], DemoMarket]) -> None:
        self._world = world
        self._market: DemoMarket

    @classmethod
    def of(cls, seed: int) -> DemoCandles:
        """The market of a seed, in no home."""
        market = DemoMarket(seed, shape_of)
        return cls(lambda: market)

    async def ping(self) -> None:
        # The first look at New York's calendar takes longer than some tools have, and they are given it beforehand.
        await asyncio.to_thread(self._world().day, INSTRUMENTS["SPY"], BEGAN_S // DAY_S)

    async def forget(self, symbol: str) -> None:
        raise _computed()

    def _known_until(self, symbol: str, as_of: Now) -> float:
        instrument = INSTRUMENTS.get(symbol)
        return super()._known_until(symbol, as_of) - (instrument.late_s if instrument else 0)

    async def _all(self) -> list[Series]:
        self._market = self._world()
        return [_series(symbol) for symbol in INSTRUMENTS]

    async def _series(self, symbol: str) -> Series | None:
        self._market = self._world()
        return _series(symbol) if symbol in INSTRUMENTS else None

    async def _between(self, series: Series, start_s: int, end_s: int) -> Bars:
        return await asyncio.to_thread(self._made, INSTRUMENTS[series.symbol], max(start_s, BEGAN_S), end_s)

    async def _before(self, series: Series, end_s: int, count: int) -> Bars:
        return await asyncio.to_thread(self._made_back, INSTRUMENTS[series.symbol], end_s, count)

    async def _page(self, series: Series, timeframe: Timeframe, end_s: int, count: int, skip: int) -> Bars:
        end_s, skip = await asyncio.to_thread(self._skipped, INSTRUMENTS[series.symbol], timeframe, end_s, skip)
        return await super()._page(series, timeframe, end_s, count, skip)

    async def _counted(self, series: Series, timeframe: Timeframe, end_s: int) -> int:
        return await asyncio.to_thread(self._numbered, INSTRUMENTS[series.symbol], timeframe, end_s)

    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        raise _computed()

    def _made(self, instrument: Instrument, start_s: int, end_s: int) -> Bars:
        days = range(start_s // DAY_S, -(-end_s // DAY_S))
        return joined([self._market.day(instrument, day) for day in days]).between(start_s, end_s)

    def _made_back(self, instrument: Instrument, end_s: int, count: int) -> Bars:
        parts: list[Bars] = []
        have, day = 0, (end_s - 1) // DAY_S
        while have < count and day * DAY_S >= BEGAN_S:
            part = self._market.day(instrument, day).between(BEGAN_S, end_s)
            parts.insert(0, part)
            have += len(part)
            day -= 1
        return joined(parts)[max(have - count, 0) :]

    def _numbered(self, instrument: Instrument, timeframe: Timeframe, end_s: int) -> int:
        return sum(number for _, number in self._days_back(instrument, timeframe, end_s))

    def _skipped(self, instrument: Instrument, timeframe: Timeframe, end_s: int, skip: int) -> tuple[int, int]:
        """The end of the day in which the last bars before these lie, and how many of its own are to be skipped."""
        for day, number in self._days_back(instrument, timeframe, end_s):
            if skip < number:
                break
            skip, end_s = skip - number, day * DAY_S
        return end_s, skip

    def _days_back(self, instrument: Instrument, timeframe: Timeframe, end_s: int) -> Iterator[tuple[int, int]]:
        """Each day, the newest first, and how many bars it has before the end.

        By the hours of trading alone: no price is computed to be counted.
        """
        last, minutes = end_s // DAY_S, end_s % DAY_S // 60
        step = timeframe.seconds // 60
        for day in range(last, BEGAN_S // DAY_S - 1, -1):
            heard = self._market.heard(instrument, day)
            if day == last:
                heard = heard & (np.arange(DAY_S // 60) < minutes)
            yield day, int(heard.reshape(-1, step).any(axis=1).sum())


def _series(symbol: str) -> Series:
    return Series(symbol, MINUTE, BEGAN_S, ENDS_S)


def _computed() -> QueryFailed:
    return QueryFailed(
        "The demo market is computed and takes no bars; `quantdeck collect demo` copies it", source="demo"
    )
