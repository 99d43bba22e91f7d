"""Bars of Alpaca, asked when they are wanted and kept nowhere: every stock and coin that it has, by the minute.

Lengths up to an hour are made there, from the same minutes; longer ones here, of its hours, for its days are New York's
(ADR 30). Raw prices: an adjusted bar knows of a split that came after it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from time import monotonic

from quantdeck.connections.alpaca import SOURCE, AlpacaApi, Question, TooRecent, keys
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Clock, Now
from quantdeck.core.errors import QueryFailed
from quantdeck.domain.candles import Bars, joined, resampled
from quantdeck.domain.symbols import asset_class
from quantdeck.domain.timeframes import MINUTE, TIMEFRAMES, Timeframe
from quantdeck.domain.watchlist import is_crypto
from quantdeck.settings import Alpaca as Group
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles import Candles, Series, off_the_loop
from quantdeck.sources.watchlist import watched

__all__ = ["AlpacaCandles", "connect", "is_sold_there"]

log = logging.getLogger(__name__)

LATE_S = 16 * 60
"""How far behind all exchanges are where the plan does not cover the last quarter of an hour; with a margin."""
_LATEST_S = 4_102_444_800
_KEPT_S, _MOST_KEPT = 3600.0, 1000
"""How long it is kept where a series begins, and of how many."""
_ANSWER_S, _WHOLE_FACTOR, _MOST_ANSWERS = 5.0, 6, 200
"""How long the newest bars are kept, how much longer where the last that can be is among them, and how many answers.

A watcher may ask twice a second, and Alpaca answers two hundred questions a minute.
"""
_HOUR = TIMEFRAMES["1h"]
_DAY_S = 86_400
_SPELT = re.compile(r"[A-Z]{1,5}(\.[A-Z])?|[A-Z0-9]{1,15}/[A-Z0-9]{2,10}")


def connect(url: str, settings: Settings, databases: Databases) -> AlpacaCandles:
    """The adapter; nothing is asked before the first question."""
    del databases
    if url.partition(":")[2]:
        raise MisconfiguredError("QUANTDECK_CANDLES says more than alpaca:, whose addresses have settings of their own")
    clock = Clock.parse(settings.clock)
    return AlpacaCandles(settings.alpaca, clock, lambda: watched(settings).watchlist.symbols)


def is_sold_there(symbol: str) -> bool:
    """Whether it may be a stock or a coin of Alpaca's: currencies and metals are not."""
    return bool(_SPELT.fullmatch(symbol)) and asset_class(symbol) in ("stock", "crypto")


class AlpacaCandles(Candles):
    """See the port. `symbols` are those that are asked for where all are wanted: Alpaca has ten thousand."""

    source = SOURCE

    def __init__(
        self, settings: Group, clock: Clock, symbols: Callable[[], Iterable[str]], *, answer_s: float = _ANSWER_S
    ) -> None:
        self._answer_s = answer_s
        self._answers: dict[Question, tuple[float, Bars]] = {}
        self._settings = settings
        self._api = AlpacaApi(settings)
        self._clock = clock
        self._symbols = symbols
        self._kept: dict[str, tuple[float, Series | None]] = {}
        self._counts: dict[tuple[str, str], tuple[float, int, int]] = {}
        self._late = False

    async def ping(self) -> None:
        await self._api.ping()

    async def close(self) -> None:
        await self._api.close()

    async def forget(self, symbol: str) -> None:
        raise _not_ours()

    async def write(self, symbol: str, base: Timeframe, bars: Bars) -> int:
        raise _not_ours()

    async def _write(self, symbol: str, base: Timeframe, bars: Bars) -> None:
        raise _not_ours()

    def _known_until(self, symbol: str, as_of: Now) -> float:
        known = super()._known_until(symbol, as_of)
        return min(known, time.time() - LATE_S) if self._late and not is_crypto(symbol) else known

    async def _all(self) -> list[Series]:
        keys(self._settings)
        found = await asyncio.gather(*map(self._series, self._symbols()))
        return [series for series in found if series is not None]

    async def _series(self, symbol: str) -> Series | None:
        if not is_sold_there(symbol):
            return None
        kept = self._kept.get(symbol)
        if kept is not None and kept[0] > monotonic():
            return kept[1]
        begins_s = MINUTE.floor(self._clock.now().timestamp()) - self._settings.lookback_days * _DAY_S
        first = await self._read(Question((symbol,), begins_s, limit=1), 1)
        # What is kept says where it begins; bars come in at its end.
        found = Series(symbol, MINUTE, int(first.time[0]), _LATEST_S) if len(first) else None
        self._kept.pop(symbol, None)
        self._kept[symbol] = (monotonic() + (_KEPT_S if found else self._answer_s * _WHOLE_FACTOR), found)
        while len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    async def _between(self, series: Series, start_s: int, end_s: int) -> Bars:
        return await self._made(series, MINUTE, start_s, end_s)

    async def _before(self, series: Series, end_s: int, count: int) -> Bars:
        return await self._last(series, MINUTE, end_s, count)

    async def _derived(self, series: Series, timeframe: Timeframe, start_s: int, end_s: int) -> Bars:
        theirs = _made_there(timeframe)
        bars = await self._made(series, theirs, start_s, end_s)
        return bars if theirs == timeframe else await off_the_loop(len(bars), lambda: resampled(bars, timeframe))

    async def _derived_before(self, series: Series, timeframe: Timeframe, end_s: int, count: int) -> Bars:
        theirs = _made_there(timeframe)
        bars = await self._last(series, theirs, end_s, count * (timeframe.seconds // theirs.seconds))
        # So many of theirs are at least as many of ours, and where they are more, the first may be a part of one.
        return resampled(bars, timeframe)[-count:]

    async def _counted(self, series: Series, timeframe: Timeframe, end_s: int) -> int:
        """By reading them, for nobody else counts; from where was counted before, and to `most_counted`."""
        most = self._settings.most_counted
        name = (series.symbol, timeframe.name)
        kept_until, settled_s, number = self._counts.pop(name, (0.0, 0, 0))
        if kept_until > monotonic() and settled_s <= end_s:
            bars = await self._derived(series, timeframe, settled_s, end_s)
        else:
            kept_until, settled_s, number = monotonic() + _KEPT_S, 0, 0
            bars = await self._page(series, timeframe, end_s, most, 0)
        total = number + len(bars)
        # The newest are counted again the next time: bars come a little late, of some plans a quarter of an hour.
        counted_s = max(timeframe.floor(end_s - 2 * LATE_S), settled_s)
        number += int(bars.time.searchsorted(counted_s))
        while len(self._counts) >= _MOST_KEPT:
            del self._counts[next(iter(self._counts))]
        self._counts[name] = (kept_until, counted_s, number)
        return min(total, most)

    async def _made(self, series: Series, timeframe: Timeframe, start_s: int, end_s: int) -> Bars:
        start_s = max(start_s, timeframe.floor(series.first_s))
        if start_s >= end_s:
            return Bars.none()
        return await self._read(Question((series.symbol,), start_s, end_s, timeframe=_spelt(timeframe)))

    async def _last(self, series: Series, timeframe: Timeframe, end_s: int, count: int) -> Bars:
        start_s = timeframe.floor(series.first_s)
        if start_s >= end_s or count <= 0:
            return Bars.none()
        question = Question((series.symbol,), start_s, end_s, _spelt(timeframe), newest_first=True, limit=count)
        until, bars = self._answers.get(question, (0.0, Bars.none()))
        if until <= monotonic():
            bars = (await self._read(question, count))[-count:]
            if count <= _MOST_KEPT:
                self._keep(question, bars, whole=bool(len(bars)) and int(bars.time[-1]) == end_s - timeframe.seconds)
        return bars

    def _keep(self, question: Question, bars: Bars, *, whole: bool) -> None:
        self._answers.pop(question, None)
        while len(self._answers) >= _MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[question] = (monotonic() + self._answer_s * (_WHOLE_FACTOR if whole else 1), bars)

    async def _read(self, question: Question, most: int | None = None) -> Bars:
        """Pages until there are so many, put in order."""
        parts: list[Bars] = []
        have = 0
        async for bars in self._pages(question):
            parts.append(_turned(bars) if question.newest_first else bars)
            have += len(bars)
            if most is not None and have >= most:
                break
        return joined(parts[::-1] if question.newest_first else parts)

    async def _pages(self, question: Question) -> AsyncIterator[Bars]:
        """Once without what the plan does not cover, where Alpaca says so: then stocks are behind by that much."""
        (symbol,) = question.symbols
        try:
            async for page in self._api.pages(self._covered(question)):
                yield page.get(symbol, Bars.none())
        except TooRecent:
            if self._late:
                raise
            self._late = True
            log.warning("alpaca_is_late", extra={"fields": {"feed": self._settings.feed, "by_s": LATE_S}})
            async for page in self._api.pages(self._covered(question)):
                yield page.get(symbol, Bars.none())

    def _covered(self, question: Question) -> Question:
        if not self._late or is_crypto(question.symbols[0]):
            return question
        latest_s = _LENGTHS[question.timeframe].floor(time.time() - LATE_S)  # no bar that had not closed by then
        end_s = latest_s if question.end_s is None else min(question.end_s, latest_s)
        return replace(question, end_s=max(end_s, question.start_s + 1))


def _turned(bars: Bars) -> Bars:
    return Bars(*(column[::-1].copy() for column in bars.columns()))


def _made_there(timeframe: Timeframe) -> Timeframe:
    """The longest length of Alpaca's of which this can be made."""
    return timeframe if timeframe.seconds <= _HOUR.seconds else _HOUR


def _spelt(timeframe: Timeframe) -> str:
    return "1Hour" if timeframe == _HOUR else f"{timeframe.seconds // 60}Min"


_LENGTHS = {_spelt(timeframe): timeframe for timeframe in TIMEFRAMES.values() if timeframe.seconds <= _HOUR.seconds}


def _not_ours() -> QueryFailed:
    return QueryFailed(
        "Alpaca takes no bars; `quantdeck collect alpaca` copies them into a store that QUANTDECK_CANDLES names",
        source=SOURCE,
    )
