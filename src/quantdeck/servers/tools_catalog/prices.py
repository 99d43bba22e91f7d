"""What a unit of anything is worth in an account's currency, by the newest bars."""

from __future__ import annotations

from contextlib import suppress

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured
from quantdeck.domain.arrays import last
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import Bars
from quantdeck.domain.holdings import worth
from quantdeck.domain.timeframes import DAY, TIMEFRAMES, Timeframe
from quantdeck.domain.volatility import realised
from quantdeck.sources.candles import Candles, Series

__all__ = ["bars_a_day", "daily_deviation", "hourly", "last_close", "worth_in"]

_HOURS = tuple(TIMEFRAMES[name] for name in ("1h", "4h", "1d"))


async def last_close(candles: Candles, symbol: str, now: Now) -> float | None:
    """The newest close; None where there is no bar, or no store of bars."""
    with suppress(NotConfigured):
        if (series := await candles.series(symbol, as_of=now)) is not None:
            bars = await candles.newest(symbol, series.base, 1, as_of=now)
            if len(bars) and bars.close[-1] > 0:
                return float(bars.close[-1])
    return None


async def worth_in(candles: Candles, symbol: str, price: float, currency: str, now: Now) -> float | None:
    """What one unit is worth in the currency, given its price; None where no rate between the two is known.

    What is no pair is a stock in dollars.
    """
    pair = symbol if "/" in symbol else f"{symbol}/USD"
    if (known := worth(pair, price, currency)) is not None:
        return known
    quote = pair.partition("/")[2]
    if (rate := await last_close(candles, f"{quote}/{currency}", now)) is not None:
        return price * rate
    if (rate := await last_close(candles, f"{currency}/{quote}", now)) is not None:
        return price / rate
    return None


async def hourly(candles: Candles, series: Series, count: int, now: Now) -> tuple[Bars, Timeframe]:
    """The newest bars of an hour, or of the next length that the series has; and that length."""
    length = next((one for one in _HOURS if one.is_made_of(series.base)), series.base)
    return await candles.newest(series.symbol, length, count, as_of=now), length


def bars_a_day(symbol: str, length: Timeframe) -> float:
    """How many bars of a length a trading day has."""
    open_s = 6.5 * 3600 if market_of(symbol) is market_of("SPY") else DAY.seconds
    return max(open_s / length.seconds, 1.0)


def daily_deviation(bars: Bars, symbol: str, length: Timeframe) -> float | None:
    """The standard deviation of a day's return, as the returns of all these bars have it; None for too few."""
    if len(bars) < 3:
        return None
    deviation = last(realised(bars.close, len(bars) - 1))
    return None if deviation is None else deviation * float(bars_a_day(symbol, length) ** 0.5)
