"""get_candles: the bars of a market, the newest page first."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects import bars
from quantdeck.dialects.tradestream import (
    DATABASE_ERROR,
    INVALID_SYMBOL,
    Clamp,
    Market,
    Offset,
    Pagination,
    tradestream,
)
from quantdeck.domain.timeframes import TIMEFRAMES, FinerThanStored
from quantdeck.servers.market_data_mcp.stored import stored
from quantdeck.sources.candles import Candles

INVALID_TIMEFRAME = ErrorCode("INVALID_TIMEFRAME", "Specified timeframe is not supported", 400)
NO_DATA = ErrorCode("NO_DATA", "No candle data available", 404)


class Candle(TypedDict):
    timestamp: Annotated[str, Field(description="When the bar opened", json_schema_extra={"format": "date-time"})]
    open: float
    high: float
    low: float
    close: float
    volume: float


class CandlePage(TypedDict):
    """Either shape; a program reads the one that it asked for."""

    items: NotRequired[Annotated[list[Candle], Field(description="Oldest first, in the format rows")]]
    columns: NotRequired[Annotated[bars.Columns, Field(description="In the format columns")]]
    pagination: Pagination


@tradestream.tool(cache_s=60, errors=(INVALID_SYMBOL, INVALID_TIMEFRAME, NO_DATA, DATABASE_ERROR))
async def get_candles(
    candles: Candles,
    now: Now,
    symbol: Market,
    timeframe: Annotated[
        Literal["1m", "5m", "15m", "1h", "4h", "1d"], Rejects(INVALID_TIMEFRAME), Field(description="Length of a bar")
    ] = "1h",
    limit: Annotated[
        int, Clamp(1, 1000), Field(description="Bars per page; without an offset the page ends with the newest")
    ] = 100,
    offset: Annotated[Offset, Field(description="Newest bars to skip")] = 0,
    format: bars.Format = "rows",  # noqa: A002 - its name on the wire
) -> CandlePage:
    """Fetch OHLCV candle data for a symbol"""
    length = TIMEFRAMES[timeframe]
    try:
        async with candles.snapshot():
            page, total = await candles.page(symbol, length, limit, skip=offset, as_of=now)
    except FinerThanStored as error:
        raise INVALID_TIMEFRAME(f"Invalid timeframe: {error}", symbol=symbol, available=error.available) from None
    if not total:
        await stored(candles, symbol, now)
        raise NO_DATA(f"No candle data found for {symbol} at {timeframe}", symbol=symbol, timeframe=timeframe)
    shown: dict[str, Any] = (
        {"columns": bars.columns(page, length)} if format == "columns" else {"items": bars.rows(page)}
    )
    pagination = Pagination(offset, limit, total, has_more=offset + len(page) < total)
    return {**shown, "pagination": pagination}  # type: ignore[typeddict-item]  # exactly one of the two
