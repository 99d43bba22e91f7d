"""How many bars a year has, and how many years a series lasts: by its market's hours, not by the calendar's."""

from __future__ import annotations

from datetime import MAXYEAR, UTC, datetime, timedelta

from quantdeck.domain.arrays import np
from quantdeck.domain.calendars import Market
from quantdeck.domain.candles import Bars

__all__ = ["bars_per_year", "spacing_s", "years"]

_YEAR = timedelta(365)
"""A year of annual figures. Leap days would make two years of one strategy differ."""


def spacing_s(bars: Bars) -> int | None:
    """How far apart most bars open, the closest of what is as frequent; None for fewer than two."""
    between = np.diff(bars.time)
    if len(between) and (between == between[0]).all():
        return int(between[0])
    steps, counts = np.unique(between, return_counts=True)
    return int(steps[counts.argmax()]) if len(steps) else None


def bars_per_year(market: Market, step_s: int, bars: Bars) -> float:
    """How many bars of this length the market has in 365 days, by the mean of the calendar years that these touch."""
    since, until = _calendar_years(bars)
    return market.expected_bars(step_s, since, until) * (_YEAR / (until - since))


def years(market: Market, step_s: int, bars: Bars) -> float:
    """How much of a year's open hours lies between the first open and the last close."""
    since, until = _calendar_years(bars)
    of_year = market.open_seconds(since, until) * (_YEAR / (until - since))
    begins, ends = (_instant(int(at)) for at in (bars.time[0], bars.time[-1] + step_s))
    return market.open_seconds(begins, ends) / of_year


def _calendar_years(bars: Bars) -> tuple[datetime, datetime]:
    first, last = (_instant(int(at)).year for at in (bars.time[0], bars.time[-1]))
    first, until = min(first, MAXYEAR - 1), min(last + 1, MAXYEAR)
    return datetime(first, 1, 1, tzinfo=UTC), datetime(until, 1, 1, tzinfo=UTC)


def _instant(at_s: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at_s)
