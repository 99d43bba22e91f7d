"""features.ohlcv_window: the bars of a stretch of time, and figures at the last of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.dialects import bars as told
from quantdeck.dialects.catalog import INSUFFICIENT_DATA, INVALID_ARGS, catalog
from quantdeck.domain import ohlcv_features
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import Bars, closed_before, joined
from quantdeck.domain.timeframes import TIMEFRAMES, FinerThanStored, Timeframe
from quantdeck.servers.tools_catalog.instruments import Instant, Spelt, known
from quantdeck.sources.candles import Candles, Series, off_the_loop

MOST_ROWS = 10_000
LONGEST = 50_000
"""Steps from start to end, whether there is a bar or not."""

Feature = Literal["sma", "ema", "rsi", "macd", "bollinger", "volatility", "volume_profile"]


# Comments, for a docstring would be the schema's description, and the spec has none.


class Row(TypedDict):
    timestamp: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    open: float
    high: float
    low: float
    close: float
    volume: float


# At the last row, of those that were asked for; what cannot be told is left out.
class Stats(TypedDict):
    sma_20: NotRequired[float]
    sma_50: NotRequired[float]
    ema_12: NotRequired[float]
    ema_26: NotRequired[float]
    rsi_14: NotRequired[Annotated[float, Field(ge=0, le=100)]]
    macd_line: NotRequired[float]
    macd_signal: NotRequired[float]
    macd_histogram: NotRequired[float]
    bollinger_upper: NotRequired[float]
    bollinger_middle: NotRequired[float]
    bollinger_lower: NotRequired[float]
    volatility: NotRequired[Annotated[float, Field(ge=0)]]
    volume_vwap: NotRequired[float]


class Metadata(TypedDict):
    total_rows: int
    first_timestamp: datetime
    last_timestamp: datetime
    data_completeness: Annotated[float, Field(ge=0, le=1)]


# Either rows or columns; a program reads those that it asked for.
class Window(TypedDict):
    symbol: str
    interval: str
    rows: NotRequired[list[Row]]
    columns: NotRequired[Annotated[told.Columns, Field(description="In place of rows, in the format columns")]]
    stats: Stats
    metadata: Metadata


def _sorted(asked: list[Feature]) -> list[Feature]:
    return sorted(set(asked))


@catalog.tool(
    "features.ohlcv_window",
    deadline_ms=500,
    p95_ms=200,
    per_minute=100,
    cache_s=300,
    errors=(INSUFFICIENT_DATA,),
)
async def ohlcv_window(
    candles: Candles,
    now: Now,
    symbol: Annotated[Spelt, Field(description="Trading symbol (EURUSD, BTC/USD, SPY)")],
    start: Annotated[Instant, Field(description="Start time for data window (ISO 8601)")],
    end: Annotated[Instant, Field(description="End time for data window (ISO 8601)")],
    interval: Annotated[Literal["1m", "5m", "15m", "1h", "4h", "1d"], Field(description="Candlestick interval")],
    features: Annotated[
        list[Feature],
        Field(min_length=1, max_length=10, description="Technical features to calculate"),
        AfterValidator(_sorted),
    ],
    format: told.Format = "rows",  # noqa: A002 - its name on the wire
) -> Window:
    """Fetch OHLCV historical data and compute technical features for analysis."""
    length = TIMEFRAMES[interval]
    _refuse_times(start, end, now, length)
    series = await known(candles, symbol, now)
    if not length.is_made_of(series.base):
        finer = FinerThanStored(symbol, length, series.base)
        raise INVALID_ARGS(f"Invalid arguments: {finer}", interval=interval, available=finer.available)
    async with candles.snapshot():
        window = await candles.between(series.symbol, length, start, end, as_of=now)
        _refuse_rows(window, symbol, interval)
        before = await _before(candles, series, length, start, ohlcv_features.warm_up(features), now)
    figures = await off_the_loop(len(window) + len(before), lambda: _figures(features, before, window))
    shown: dict[str, Any] = (
        {"columns": told.columns(window, length)} if format == "columns" else {"rows": told.rows(window)}
    )
    return {
        "symbol": symbol,
        "interval": interval,
        **shown,  # type: ignore[typeddict-item]  # exactly one of rows and columns
        "stats": figures,
        "metadata": {
            "total_rows": len(window),
            "first_timestamp": datetime.fromtimestamp(int(window.time[0]), UTC),
            "last_timestamp": datetime.fromtimestamp(int(window.time[-1]), UTC),
            "data_completeness": _completeness(window, series, length, start, end, now),
        },
    }


def _refuse_times(start: datetime, end: datetime, now: Now, length: Timeframe) -> None:
    if start >= end:
        raise INVALID_ARGS("Invalid arguments: end must be later than start", start=start, end=end)
    steps = (min(end, now) - start).total_seconds() / length.seconds
    if steps > LONGEST:
        raise INVALID_ARGS(
            f"Invalid arguments: from start to end is {steps:,.0f} times {length}, and at most {LONGEST:,} are looked "
            "through; ask for a shorter window or a longer interval",
            max_steps=LONGEST,
        )


def _refuse_rows(window: Bars, symbol: str, interval: str) -> None:
    if len(window) > MOST_ROWS:
        raise INVALID_ARGS(
            f"Invalid arguments: the window has {len(window):,} bars, and at most {MOST_ROWS:,} are answered; ask for "
            "a shorter window or a longer interval",
            rows=len(window),
            max_rows=MOST_ROWS,
        )
    if not len(window):
        raise INSUFFICIENT_DATA(
            f"Insufficient data: {symbol} has no closed bar of {interval} in this window",
            symbol=symbol,
            available=0,
        )


async def _before(candles: Candles, series: Series, length: Timeframe, start: datetime, count: int, now: Now) -> Bars:
    """The last `count` bars before the window, fewer where the series began later.

    Read back, ever further: how many there are in a stretch of time is known only when it was read.
    """
    parts: list[Bars] = []
    end_s, first_s = length.ceil(start.timestamp()), length.floor(series.first_s)
    have, reach_s = 0, count * length.seconds
    while have < count and end_s > first_s:
        since_s = max(end_s - reach_s, first_s)
        part = await candles.between(series.symbol, length, _at(since_s), _at(end_s), as_of=now)
        parts.insert(0, part)
        have += len(part)
        end_s, reach_s = since_s, 2 * reach_s
    return joined(parts)[max(have - count, 0) :]


def _figures(names: list[Feature], before: Bars, window: Bars) -> dict[str, float]:
    try:
        return ohlcv_features.features(names, window, joined([before, window]))
    except ohlcv_features.TooFewBars as short:
        said = ", ".join(f"{name} needs {needs}" for name, needs in short.needed.items())
        have = len(before) + len(window)
        raise INSUFFICIENT_DATA(
            f"Insufficient data: {said} bars, and up to the end of the window there are {have}",
            required=dict(short.needed),
            available=have,
        ) from None


def _completeness(window: Bars, series: Series, length: Timeframe, start: datetime, end: datetime, now: Now) -> float:
    """Of the bars of the window that may have closed by now."""
    begin_s, end_s = length.ceil(start.timestamp()), length.ceil(end.timestamp())
    end_s = min(end_s, closed_before(now.timestamp(), length))
    return ohlcv_features.completeness(window, length, market_of(series.symbol), begin_s, end_s)


def _at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
