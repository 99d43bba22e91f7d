"""Which bars a backtest is of: the dates that were asked for, at a length of bars, and whether there are enough."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import ErrorCode, RejectedValue, ToolError
from quantdeck.domain.calendars import Market
from quantdeck.domain.timeframes import TIMEFRAMES, Timeframe
from quantdeck.sources.candles import Series

__all__ = [
    "INSUFFICIENT_DATA",
    "INVALID_DATE_RANGE",
    "Date",
    "Span",
    "expected",
    "insufficient",
    "is_enough",
    "length_of",
    "span",
]

INVALID_DATE_RANGE = ErrorCode("INVALID_DATE_RANGE", "Start date must be before end date", 400)
INSUFFICIENT_DATA = ErrorCode("INSUFFICIENT_DATA", "Not enough historical data for the specified range", 422)

USUAL = timedelta(days=90)
"""How long before the end a backtest begins of which nobody said when."""
FEWEST_BARS = 100
FEWEST_SHARE = 0.8
"""Of the bars that the market's hours let expect."""
USUAL_LENGTH = TIMEFRAMES["1h"]


_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _date(given: Any) -> date:
    said = "must be a date such as 2026-01-15"
    if not isinstance(given, str) or not _DAY.fullmatch(given):  # fromisoformat takes 20260115 and 2026-W03-4 too
        raise RejectedValue(said)
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise RejectedValue(said) from None


Date = Annotated[date, BeforeValidator(_date), WithJsonSchema({"type": "string", "format": "date"})]
"""A day in UTC, in one form only."""


@dataclass(frozen=True, slots=True)
class Span:
    """Whole days of UTC, the last included, of which the newest may not be over."""

    first: date
    last: date
    start: datetime
    end: datetime


def span(first: date | None, last: date | None, now: Now) -> Span:
    """The days that were asked for; up to today, and from 90 days before, unless said."""
    today = now.date()
    last = today if last is None else last
    if first is None:
        first = last - min(USUAL, last - date.min)
    asked = {"start_date": first.isoformat(), "end_date": last.isoformat()}
    if last > today:
        said = f"Invalid date range: {last} is in the future; today is {today} (UTC)"
        raise INVALID_DATE_RANGE(said, **asked, today=today.isoformat())
    if first >= last:
        raise INVALID_DATE_RANGE(f"Invalid date range: start_date {first} must be before end_date {last}", **asked)
    begin, end = (datetime.combine(day, time(), UTC) for day in (first, last))
    return Span(first, last, begin, min(end + timedelta(days=1), now))


def length_of(asked: str | None, series: Series) -> Timeframe:
    """An hour unless said; of a series that is stored in longer bars, its own."""
    if asked is not None:
        return TIMEFRAMES[asked]
    return USUAL_LENGTH if USUAL_LENGTH.is_made_of(series.base) else series.base


def expected(market: Market, asked: Span, length: Timeframe, series: Series) -> int | None:
    """How many bars the market's hours let expect; None where most of the range lies before the first bar there is.

    Then nobody needs to know, and counting the hours of a thousand years would take its time.
    """
    begins = datetime.fromtimestamp(series.first_s, UTC)
    if begins - asked.start > asked.end - begins:
        return None
    end = max(asked.end - timedelta(seconds=length.seconds), asked.start)  # a bar is there when it has closed
    return market.expected_bars(length.seconds, asked.start, end)


def is_enough(count: int, wanted: int) -> bool:
    return count >= max(FEWEST_BARS, wanted * FEWEST_SHARE)


def insufficient(symbol: str, length: Timeframe, series: Series | None, count: int, wanted: int | None) -> ToolError:
    """What to say of a range with too few bars."""
    there = "none are stored"
    if series is not None:
        begins, ends = (iso(datetime.fromtimestamp(at, UTC)) for at in (series.first_s, series.last_s))
        there = f"there are bars from {begins} to {ends}"
    gaps = f" and {FEWEST_SHARE:.0%} of those that its market's hours let expect" if count >= FEWEST_BARS else ""
    has = count if wanted is not None or series is None else "few"
    return INSUFFICIENT_DATA(
        f"Not enough data: a backtest of {symbol} needs {FEWEST_BARS} closed bars of {length}{gaps}; this range has "
        f"{has}, {there}. Ask for other dates or another timeframe",
        symbol=symbol,
        timeframe=length.name,
        required=FEWEST_BARS,
        available=count,
        expected=wanted,
    )
