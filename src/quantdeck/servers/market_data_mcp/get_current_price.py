"""get_current_price: where a market stands, and how it came there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Annotated

from pydantic import Field

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import ErrorCode
from quantdeck.dialects.tradestream import DATABASE_ERROR, INVALID_SYMBOL, tradestream
from quantdeck.dialects.tradestream import Market as Symbol
from quantdeck.domain.calendars import Market, market_of
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import Timeframe
from quantdeck.servers.market_data_mcp.stored import stored
from quantdeck.sources.candles import Candles, Series

SYMBOL_NOT_FOUND = ErrorCode("SYMBOL_NOT_FOUND", "No price data available for the symbol", 404)
STALE_DATA = ErrorCode("STALE_DATA", "Price data is older than acceptable threshold", 503, retry=True)

STALE_AFTER_S = 300
FORGOTTEN_AFTER = timedelta(days=7)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EARLIER = {HOUR: timedelta(minutes=10), DAY: HOUR}
"""How much older than its time a close may be that a change is counted from."""


@dataclass(frozen=True, slots=True)
class CurrentPrice:
    price: float
    change_1h: Annotated[float | None, Field(description="Fraction; null where there is no bar to compare with")]
    change_24h: Annotated[float | None, Field(description="Fraction; null where there is no bar to compare with")]
    volume_24h: Annotated[float, Field(description="In units of the symbol")]
    timestamp: Annotated[datetime, Field(description="When the newest bar opened")]


@tradestream.tool(cache_s=5, errors=(INVALID_SYMBOL, SYMBOL_NOT_FOUND, STALE_DATA, DATABASE_ERROR))
async def get_current_price(candles: Candles, now: Now, symbol: Symbol) -> CurrentPrice:
    """Get the current price and recent change for a symbol"""
    async with candles.snapshot():
        series = await stored(candles, symbol, now)
        if series is None:
            raise SYMBOL_NOT_FOUND(f"No price found for {symbol}", symbol=symbol)
        closed_at = datetime.fromtimestamp(series.last_s + series.base.seconds, UTC)
        since = closed_at - DAY - EARLIER[DAY] - timedelta(seconds=series.base.seconds)
        bars = await candles.between(symbol, series.base, since, closed_at, as_of=now)
    price = float(bars.close[-1])
    _refuse_old(series, closed_at, now, price)
    return CurrentPrice(
        price=price,
        change_1h=_change(bars, series, closed_at, HOUR),
        change_24h=_change(bars, series, closed_at, DAY),
        volume_24h=float(bars.volume[bars.time >= (closed_at - DAY).timestamp()].sum()),
        timestamp=datetime.fromtimestamp(series.last_s, UTC),
    )


def _refuse_old(series: Series, closed_at: datetime, now: Now, price: float) -> None:
    """A price is as old as its bar's close. Only open hours age it: till the next opening it is the market's last."""
    symbol, opened_at = series.symbol, datetime.fromtimestamp(series.last_s, UTC)
    age_s = now.timestamp() - closed_at.timestamp()
    facts = {"symbol": symbol, "last_price": price, "timestamp": iso(opened_at), "age_seconds": round(age_s)}
    if age_s > FORGOTTEN_AFTER.total_seconds():
        raise SYMBOL_NOT_FOUND(
            f"No price found for {symbol} within {FORGOTTEN_AFTER.days} days; its newest bar is of {iso(opened_at)}",
            **facts,
        )
    market = market_of(symbol)
    open_s, allowed_s = market.open_seconds(closed_at, now), _allowed_s(series.base, closed_at, market)
    if open_s > allowed_s:
        raise STALE_DATA(
            f"Stale: the last price of {symbol} is {round(open_s)} s of open market old, which is over {allowed_s} s",
            **facts,
            open_seconds=round(open_s),
            max_age_seconds=allowed_s,
        )


def _allowed_s(base: Timeframe, closed_at: datetime, market: Market) -> int:
    """How old a price may be. The next bar cannot be there before it has closed: beyond a minute it is waited for.

    What it is waited for is counted in open hours too, of the first bar to come that has any.
    """
    length = timedelta(seconds=base.seconds)
    opens_at = closed_at
    if not market.open_seconds(opens_at, opens_at + length) and (opening := market.next_open(closed_at)) is not None:
        opens_at = datetime.fromtimestamp(base.floor(opening.timestamp()), UTC)
    return STALE_AFTER_S + max(round(market.open_seconds(opens_at, opens_at + length)) - 60, 0)


def _change(bars: Bars, series: Series, closed_at: datetime, span: timedelta) -> float | None:
    """How far the price has moved since the newest close at or before then.

    None where there is none near enough, or one that is not above zero: nothing is a fraction of that.
    """
    until = (closed_at - span).timestamp()
    closes_at = bars.time + series.base.seconds
    place = int(closes_at.searchsorted(until, side="right")) - 1
    if place < 0 or until - closes_at[place] > EARLIER[span].total_seconds() or bars.close[place] <= 0:
        return None
    moved = float(bars.close[-1]) / float(bars.close[place]) - 1
    return moved if isfinite(moved) else None
