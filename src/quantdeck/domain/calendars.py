"""When a market is open. Instants are aware datetimes, lengths are seconds.

A market is the list of its regular hours, made a year at a time when first asked for. The exchange's holidays come
from the package `holidays`, which is loaded then and not before. Hours are those of today, also for the past: New
York has kept them since 1985. The weeks of currencies and metals know no holidays, for no rule says which there are.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta, tzinfo
from functools import cache, lru_cache
from itertools import accumulate
from typing import Literal
from zoneinfo import ZoneInfo

from quantdeck.domain.symbols import AssetClass, asset_class

__all__ = ["CRYPTO", "FX", "METALS", "NYSE", "Market", "Session", "market_of"]

Session = Literal["premarket", "regular", "afterhours", "closed"]

PREMARKET, OPENING, CLOSING = time(4), time(9, 30), time(16)
AFTERHOURS = timedelta(hours=4)
WEEK_TURNS = time(17)

_YEARS_KEPT = 256
_MEAN_YEAR = timedelta(365.2425).total_seconds()


@dataclass(frozen=True, slots=True)
class _Year:
    """The regular hours that begin in one year: when, until when, and how many seconds there have been before each."""

    opens: tuple[int, ...]
    closes: tuple[int, ...]
    before: tuple[int, ...]

    @classmethod
    def of(cls, hours: list[tuple[int, int]]) -> _Year:
        lengths = (closes - opens for opens, closes in hours)
        return cls(
            opens=tuple(opens for opens, _ in hours),
            closes=tuple(closes for _, closes in hours),
            before=tuple(accumulate(lengths, initial=0)),
        )

    def elapsed(self, at: float) -> float:
        """Seconds of these hours that have passed."""
        index = bisect_right(self.opens, at) - 1
        return 0 if index < 0 else self.before[index] + min(at, self.closes[index]) - self.opens[index]


class Market(ABC):
    """A market that opens and closes."""

    @abstractmethod
    def hours_of(self, year: int) -> _Year:
        """The regular hours that begin in a year."""

    def session_at(self, instant: datetime) -> Session:
        at = _epoch(instant)
        return "regular" if any(opens <= at < closes for opens, closes in self.hours(at, at + 1)) else "closed"

    def is_open(self, instant: datetime) -> bool:
        """Whether these are regular hours."""
        return self.session_at(instant) == "regular"

    def next_open(self, instant: datetime) -> datetime | None:
        """When regular hours next begin, strictly later; None for a market that never closes."""
        at = _epoch(instant)
        for year in _years(at, at + timedelta(366).total_seconds()):
            opens = self.hours_of(year).opens
            index = bisect_right(opens, at)
            if index < len(opens):
                return datetime.fromtimestamp(opens[index], UTC)
        return None

    def open_seconds(self, since: datetime, until: datetime) -> float:
        """How long the market was open between two instants; 0 if the second is not later."""
        start, end = _epoch(since), _epoch(until)
        years = (self.hours_of(year) for year in _years(start, end))
        return max(sum(year.elapsed(end) - year.elapsed(start) for year in years), 0.0)

    def hours(self, since: float, until: float) -> Iterator[tuple[int, int]]:
        """The regular hours that overlap a stretch of time, in their order; all in epoch seconds."""
        for number in _years(since, until):
            year = self.hours_of(number)
            for index in range(bisect_right(year.closes, since), len(year.opens)):
                if year.opens[index] >= until:
                    return
                yield year.opens[index], year.closes[index]

    def expected_bars(self, step_s: int, since: datetime, until: datetime) -> int:
        """How many bars begin in [since, until): one for each step of the UTC clock in which the market is open."""
        first, end = _steps(step_s, since, until)
        count = 0
        for opens, closes in self.hours(first * step_s, end * step_s):
            here = max(opens // step_s, first)
            first = max(min(-(-closes // step_s), end), here)  # two stretches may share a step
            count += first - here
        return count


class _Exchange(Market):
    """The New York stock exchange and those that keep its hours."""

    def closing(self, day: date) -> time | None:
        """When trading ends that day; None if there is none."""
        closed, early = _new_york_days(day.year)
        return None if day.weekday() >= 5 or day in closed else early.get(day, CLOSING)

    def session_at(self, instant: datetime) -> Session:
        _epoch(instant)
        local = instant.astimezone(_new_york()).replace(tzinfo=None)
        closing = self.closing(local.date())
        if closing is None or local.time() < PREMARKET:
            return "closed"
        if local.time() < OPENING:
            return "premarket"
        if local.time() < closing:
            return "regular"
        return "afterhours" if local < datetime.combine(local.date(), closing) + AFTERHOURS else "closed"

    @lru_cache(_YEARS_KEPT)  # noqa: B019 - there is one of them, for good
    def hours_of(self, year: int) -> _Year:
        days = ((day, self.closing(day)) for day in _days(year))
        return _Year.of([(_local(day, OPENING), _local(day, closing)) for day, closing in days if closing])


class _Week(Market):
    """From Sunday 17:00 to Friday 17:00 in New York, as banks deal in currencies and metals."""

    @lru_cache(_YEARS_KEPT)  # noqa: B019 - there are two of them, for good
    def hours_of(self, year: int) -> _Year:
        sundays = (day for day in _days(year) if day.weekday() == 6)
        return _Year.of([(_local(day, WEEK_TURNS), _local(day + timedelta(5), WEEK_TURNS)) for day in sundays])


class _Always(Market):
    """Never closed."""

    @lru_cache(_YEARS_KEPT)  # noqa: B019 - there is one of it, for good
    def hours_of(self, year: int) -> _Year:
        begins, ends = (int(datetime(number, 1, 1, tzinfo=UTC).timestamp()) for number in (year, year + 1))
        return _Year.of([(begins, ends)])

    def session_at(self, instant: datetime) -> Session:
        _epoch(instant)
        return "regular"

    def next_open(self, instant: datetime) -> datetime | None:
        _epoch(instant)
        return None


NYSE = _Exchange()
FX = _Week()
METALS = _Week()
CRYPTO = _Always()

_MARKETS: Mapping[AssetClass, Market] = {"stock": NYSE, "fx": FX, "metal": METALS, "crypto": CRYPTO}


def market_of(symbol: str) -> Market:
    """Where a symbol in its canonical spelling is traded."""
    return _MARKETS[asset_class(symbol)]


def _epoch(instant: datetime) -> float:
    if instant.tzinfo is None:
        raise ValueError("an instant has an offset from UTC; write it like 2026-01-15T09:30:00Z")
    return instant.timestamp()


def _steps(step_s: int, since: datetime, until: datetime) -> tuple[int, int]:
    """The first step that begins at `since` or later, and the first that begins at `until` or later."""
    first = math.ceil(_epoch(since) / step_s)
    return first, max(math.ceil(_epoch(until) / step_s), first)


def _years(since: float, until: float) -> range:
    """Whose hours a stretch of time may touch: those of its years, roughly told, and one to either side."""
    first, last = (int(at // _MEAN_YEAR) + 1970 for at in (since, until))
    return range(max(first - 1, MINYEAR + 1), min(last + 1, MAXYEAR - 1) + 1)


def _days(year: int) -> Iterator[date]:
    day = date(year, 1, 1)
    while day.year == year:
        yield day
        day += timedelta(1)


def _local(day: date, at: time) -> int:
    return int(datetime.combine(day, at, tzinfo=_new_york()).timestamp())


@cache
def _new_york() -> tzinfo:
    return ZoneInfo("America/New_York")  # reads a file, which no import here does


_CLOSES_AT = re.compile(r"close at (\d+):(\d+)([ap])m")


@lru_cache(_YEARS_KEPT)
def _new_york_days(year: int) -> tuple[frozenset[date], Mapping[date, time]]:
    """The days of a year on which the exchange is closed, and those on which it closes early, and when."""
    from holidays import financial_holidays

    closed = financial_holidays("NYSE", years=year, expand=False)
    early = financial_holidays("NYSE", years=year, expand=False, categories="half_day", language="en_US")
    return frozenset(closed), {day: _closes_at(name) for day, name in early.items()}


def _closes_at(name: str) -> time:
    """The time stands in the holiday's name only."""
    said = _CLOSES_AT.search(name)
    if said is None:
        return time(13)
    return time(int(said[1]) % 12 + (12 if said[3] == "p" else 0), int(said[2]))
