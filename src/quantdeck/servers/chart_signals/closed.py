"""The closed bars that figures are made of, and how old they are."""

from __future__ import annotations

from datetime import UTC, datetime

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode
from quantdeck.dialects.chart import INVALID_TIMEFRAME, LENGTHS, Manner
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import Bars
from quantdeck.domain.crossings import BARS_USED
from quantdeck.domain.timeframes import FinerThanStored, Timeframe
from quantdeck.sources.candles import Candles

__all__ = ["INSUFFICIENT", "STALE_AFTER_S", "age_s", "closed_bars", "is_collected", "is_stale", "opened", "unstored"]

INSUFFICIENT = "insufficient bars (need 35+)"
"""The spec's words."""

STALE_AFTER_S = 300
"""Of open hours since the newest bar should have closed."""


async def closed_bars(
    candles: Candles, symbol: str, timeframe: str, now: Now, count: int = BARS_USED
) -> tuple[Bars, str]:
    """The newest closed bars by one read, and the name of the store that has them."""
    store = await candles.store_of(symbol, as_of=now)
    try:
        return await store.newest(symbol, LENGTHS[timeframe], count, as_of=now), store.source
    except FinerThanStored as error:
        there = [name for name, length in LENGTHS.items() if length.name in error.available]
        told = f"{symbol} is stored in bars of {error.base}; of these there can be {', '.join(there) or 'none of them'}"
        raise INVALID_TIMEFRAME(told, symbol=symbol, available=there) from None


def opened(bars: Bars) -> str:
    """When the newest bar opened, as the spec writes times."""
    return datetime.fromtimestamp(int(bars.time[-1]), UTC).isoformat()


def age_s(bars: Bars, timeframe: Timeframe, now: Now) -> int:
    """Seconds since the newest bar closed."""
    return round(now.timestamp() - int(bars.time[-1]) - timeframe.seconds)


def is_stale(symbol: str, bars: Bars, timeframe: Timeframe, now: Now) -> bool:
    """Whether a later bar should have been there for five minutes, by the hours of its market."""
    closed = datetime.fromtimestamp(int(bars.time[-1]) + timeframe.seconds, UTC)
    return market_of(symbol).open_seconds(closed, now) > STALE_AFTER_S + timeframe.seconds


def is_collected(manner: Manner, symbol: str) -> bool:
    """Whether a collector is about to bring its bars: it has keys, and the symbol is watched."""
    options = manner.call.runtime.options
    return bool(options["alpaca"].api_key.get_secret_value()) and symbol in options["watchlist"]().watchlist.symbols


def unstored(symbol: str, source: str, code: ErrorCode) -> Exception:
    """What is said of a symbol of which there are no bars."""
    if source == "demo":
        return code(f"The demo market has no {symbol}; get_watchlist names what it has", symbol=symbol)
    return code(
        f"No bars of {symbol} are stored. Put it on the watchlist (QUANTDECK_WATCHLIST) and run `quantdeck collect "
        "alpaca` with ALPACA_API_KEY and ALPACA_SECRET_KEY set, or import them with `quantdeck import candles`",
        symbol=symbol,
        settings=["ALPACA_API_KEY", "ALPACA_SECRET_KEY", "QUANTDECK_WATCHLIST"],
    )
