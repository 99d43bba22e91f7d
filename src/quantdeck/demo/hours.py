"""The demo market by the hour, for what is computed of it when a world is made."""

from __future__ import annotations

from functools import lru_cache

from quantdeck.domain.candles import Bars, joined, resampled
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.timeframes import TIMEFRAMES

__all__ = ["HOUR", "WEEK_S", "hours"]

HOUR = TIMEFRAMES["1h"]
WEEK_S = 7 * DAY_S


def hours(seed: int, symbol: str, begin_s: int, end_s: int) -> Bars:
    """The bars between two Mondays."""
    return joined([_week(seed, symbol, week_s) for week_s in range(begin_s, end_s, WEEK_S)])


@lru_cache(2048)  # several worlds may be made in one process, and bars are what takes the time
def _week(seed: int, symbol: str, begin_s: int) -> Bars:
    days = range(begin_s // DAY_S, (begin_s + WEEK_S) // DAY_S)
    market = _market(seed)
    return joined([resampled(market.day(INSTRUMENTS[symbol], day), HOUR) for day in days])


@lru_cache(4)
def _market(seed: int) -> DemoMarket:
    return DemoMarket(seed, shape_of)
