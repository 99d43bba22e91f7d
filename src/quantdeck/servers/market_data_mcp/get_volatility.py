"""get_volatility: how far a market moves in a bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import DATABASE_ERROR, INVALID_SYMBOL, Market, tradestream
from quantdeck.domain.timeframes import TIMEFRAMES, FinerThanStored
from quantdeck.domain.volatility import BARS_NEEDED, BARS_USED, volatility
from quantdeck.servers.market_data_mcp.get_candles import INVALID_TIMEFRAME
from quantdeck.servers.market_data_mcp.stored import stored
from quantdeck.sources.candles import Candles

INSUFFICIENT_DATA = ErrorCode("INSUFFICIENT_DATA", "Not enough data points to calculate volatility", 422)


@dataclass(frozen=True, slots=True)
class MarketVolatility:
    volatility: Annotated[float | None, Field(description="Standard deviation of returns")]
    atr: Annotated[float | None, Field(description="Average True Range")]
    high_low_range: Annotated[float | None, Field(description="Highest high less lowest low")]


@tradestream.tool(cache_s=30, errors=(INVALID_SYMBOL, INVALID_TIMEFRAME, INSUFFICIENT_DATA, DATABASE_ERROR))
async def get_volatility(
    candles: Candles,
    now: Now,
    symbol: Market,
    timeframe: Annotated[
        Literal["1h", "4h", "1d"], Rejects(INVALID_TIMEFRAME), Field(description="Length of the bars that are compared")
    ] = "1h",
) -> MarketVolatility:
    """Calculate volatility metrics for a symbol"""
    try:
        bars = await candles.newest(symbol, TIMEFRAMES[timeframe], BARS_USED, as_of=now)
    except FinerThanStored as error:
        raise INVALID_TIMEFRAME(f"Invalid timeframe: {error}", symbol=symbol, available=error.available) from None
    if not len(bars):
        await stored(candles, symbol, now)
    if len(bars) < BARS_NEEDED:
        raise INSUFFICIENT_DATA(
            f"Volatility of {symbol} needs {BARS_NEEDED} closed bars of {timeframe}; there are {len(bars)}",
            symbol=symbol,
            timeframe=timeframe,
            required=BARS_NEEDED,
            available=len(bars),
        )
    found = volatility(bars.high, bars.low, bars.close)
    return MarketVolatility(found.volatility, found.atr, found.high_low_range)
