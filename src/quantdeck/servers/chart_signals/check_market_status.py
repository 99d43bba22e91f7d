"""check_market_status: whether New York's exchange is open, and when it opens next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from quantdeck.core.clock import Now
from quantdeck.dialects.chart import Manner, chart
from quantdeck.domain.calendars import NYSE, Session
from quantdeck.servers.chart_signals.get_signals import Time
from quantdeck.sources.candles import Candles


@dataclass(frozen=True, slots=True)
class Stocks:
    open: Annotated[bool, Field(description="In the regular session only")]
    session: Session
    next_open: Annotated[str, Field(description="Of the regular session, strictly later")]
    next_open_iso: Time
    current_time_et: str


@dataclass(frozen=True, slots=True)
class Crypto:
    open: bool
    note: str


@dataclass(frozen=True, slots=True)
class MarketStatus:
    stocks: Stocks
    crypto: Crypto
    timestamp: Time
    source: str


@chart.tool()
async def check_market_status(candles: Candles, now: Now, manner: Manner) -> MarketStatus:
    """Whether the stock market is open (exchange calendar, holidays and early closes) and when it opens next"""
    opens = NYSE.next_open(now)
    assert opens is not None  # an exchange always opens again
    session = NYSE.session_at(now)
    return MarketStatus(
        stocks=Stocks(
            open=session == "regular",
            session=session,
            next_open=_worded(opens, now),
            next_open_iso=opens.isoformat(),
            current_time_et=_clock(_eastern(now)),
        ),
        crypto=Crypto(open=True, note="24/7 trading"),
        timestamp=now.isoformat(),
        source=manner.came_from("demo" if candles.source == "demo" else "calendar"),
    )


def _eastern(instant: datetime) -> datetime:
    return instant.astimezone(ZoneInfo("America/New_York"))


def _worded(opens: datetime, now: datetime) -> str:
    """As the spec words it, by New York's days."""
    there = _eastern(opens)
    days = (there.date() - _eastern(now).date()).days
    day = {0: "Today", 1: "Tomorrow"}.get(days, f"{there:%A}")
    return f"{day} {_clock(there)}"


def _clock(at: datetime) -> str:
    return f"{at.hour % 12 or 12}:{at:%M %p} ET"
