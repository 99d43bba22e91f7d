"""What a day of the demo market is like, minute by minute: when it trades, when it moves and when it is busy."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from quantdeck.domain.arrays import Floats, np
from quantdeck.domain.calendars import AFTERHOURS, CRYPTO, NYSE, OPENING, PREMARKET, Market, market_of
from quantdeck.domain.demo_instruments import Instrument
from quantdeck.domain.demo_market import DAY_S, DayShape

__all__ = ["shape_of"]

_MINUTES = 1440
_BEGAN = date(1970, 1, 1)
_KEPT_DAYS, _KEPT_SHAPES = 16_384, 64

_NIGHT, _EARLY, _REGULAR, _LATE = 0.14, 0.05, 0.77, 0.04
"""What the parts of a trading day in New York move, in variance."""
_THIN = 0.015
"""The share of its volume that is traded before the opening, and again after the close."""
_QUIET_DAY = 0.05
"""What a day without trading moves. At no minute nothing does, or a bridge had nothing to hold on to."""


class _Part(NamedTuple):
    """A stretch of minutes, counted from the beginning of a UTC day, and its share of variance and of volume."""

    begin: int
    end: int
    variance: float
    volume: float
    busy_at_ends: bool = False


def shape_of(instrument: Instrument, day: int) -> DayShape:
    """Of the instrument's market; the day is counted from 1970."""
    return _shape(_parts(market_of(instrument.symbol), day))


@lru_cache(_KEPT_DAYS)
def _parts(market: Market, day: int) -> tuple[_Part, ...]:
    if market is CRYPTO:
        return (_Part(0, _MINUTES, 1, 1),)
    if market is NYSE:
        # In winter the evening of a New York day is part of the next day of UTC.
        return (*_new_york(day - 1, from_day=day), *_new_york(day, from_day=day))
    begin_s = day * DAY_S
    opened = [(opens - begin_s, closes - begin_s) for opens, closes in market.hours(begin_s, begin_s + DAY_S)]
    minutes = [(max(opens // 60, 0), min(closes // 60, _MINUTES)) for opens, closes in opened]
    return tuple(_Part(begin, end, (end - begin) / _MINUTES, (end - begin) / _MINUTES) for begin, end in minutes)


def _new_york(day: int, *, from_day: int) -> tuple[_Part, ...]:
    local = _BEGAN + timedelta(days=day)
    closing = NYSE.closing(local)
    if closing is None:
        return ()

    def minute(at: time) -> int:
        instant = datetime.combine(local, at, tzinfo=ZoneInfo("America/New_York"))
        return int(instant.timestamp()) // 60 - from_day * _MINUTES

    opens, closes = minute(OPENING), minute(closing)
    evening = closes + int(AFTERHOURS.total_seconds()) // 60
    return (
        _Part(minute(PREMARKET), opens, _EARLY, _THIN),
        _Part(opens, closes, _REGULAR, 1 - 2 * _THIN, busy_at_ends=True),
        _Part(closes, evening, _LATE, _THIN),
    )


@lru_cache(_KEPT_SHAPES)
def _shape(parts: tuple[_Part, ...]) -> DayShape:
    quiet = _NIGHT if parts else _QUIET_DAY
    trades, variance, volume = np.zeros(_MINUTES, dtype=bool), np.full(_MINUTES, quiet / _MINUTES), np.zeros(_MINUTES)
    for part in parts:
        inside = np.arange(part.begin, part.end)
        here = (inside >= 0) & (inside < _MINUTES)
        minutes = inside[here]
        trades[minutes] = True
        variance[minutes] = part.variance * _spread(part, steep=2.2)[here]
        volume[minutes] = part.volume * _spread(part, steep=3.0)[here]
    return DayShape(trades, variance, volume)


def _spread(part: _Part, *, steep: float) -> Floats:
    """Shares of a part's minutes, which add up to 1: alike, or in the shape of a U."""
    place = (np.arange(part.end - part.begin) + 0.5) / (part.end - part.begin)
    if not part.busy_at_ends:
        return np.full(len(place), 1 / len(place))
    busy = 1 + steep * np.exp(-place / 0.06) + 0.8 * steep * np.exp(-(1 - place) / 0.045)
    shares: Floats = busy / busy.sum()
    return shares
