"""get_signals: the figures of the newest closed bar, and what crosses there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from quantdeck.core.clock import Now
from quantdeck.dialects.chart import (
    INSUFFICIENT_DATA,
    INVALID_SYMBOL,
    INVALID_TIMEFRAME,
    LENGTHS,
    UNAVAILABLE,
    ChartTimeframe,
    Manner,
    Symbol,
    chart,
)
from quantdeck.domain.candles import Bars
from quantdeck.domain.crossings import BARS_NEEDED, reading
from quantdeck.domain.symbols import asset_class
from quantdeck.servers.chart_signals.closed import (
    INSUFFICIENT,
    age_s,
    closed_bars,
    is_collected,
    is_stale,
    opened,
    unstored,
)
from quantdeck.sources.candles import Candles

AssetType = Literal["stock", "crypto"]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


@dataclass(frozen=True, slots=True)
class Snapshot:
    price: float | None
    ema9: float | None
    ma10: float | None
    macd: float | None
    signal: float | None
    hist: float | None
    rsi: Annotated[float | None, Field(description="Null where nothing moved")]
    bb_upper: float | None
    bb_middle: float | None
    bb_lower: float | None
    time: Annotated[Time, Field(description="When the bar opened")]


@dataclass(frozen=True, slots=True)
class Crossings:
    macd_cross_up: bool
    macd_cross_dn: bool
    ema_support_lost: bool
    ema_reclaim: bool
    rsi_overbought: bool
    rsi_oversold: bool
    bb_squeeze: bool
    bb_breakout_up: bool
    bb_breakout_dn: bool


@dataclass(frozen=True, slots=True)
class Signals:
    ready: Literal[True]
    symbol: str
    asset_type: AssetType
    tf: ChartTimeframe
    snapshot: Snapshot
    crossings: Crossings
    age_seconds: Annotated[int, Field(description="Since the bar closed")]
    stale: Annotated[bool, Field(description="The market is open and newer bars are missing")]
    source: str


@dataclass(frozen=True, slots=True)
class NotReady:
    ready: Literal[False]
    reason: str
    symbol: str
    tf: ChartTimeframe
    bars_available: int
    bars_needed: int
    error_code: int
    source: str


@chart.tool(errors=(INSUFFICIENT_DATA, INVALID_SYMBOL, INVALID_TIMEFRAME))
async def get_signals(
    candles: Candles, now: Now, manner: Manner, symbol: Symbol, timeframe: ChartTimeframe
) -> Signals | NotReady:
    """Indicators (EMA, SMA, MACD, RSI, Bollinger) and crossings at the newest closed bar"""
    bars, store = await closed_bars(candles, symbol, timeframe, now)
    source = manner.came_from(store)
    if not len(bars) and not is_collected(manner, symbol):
        raise unstored(symbol, source, UNAVAILABLE)
    if len(bars) < BARS_NEEDED:
        return _not_ready(symbol, timeframe, len(bars), source, strict=manner.is_strict)
    found = reading(bars.close)
    return Signals(
        ready=True,
        symbol=symbol,
        asset_type="crypto" if asset_class(symbol) == "crypto" else "stock",
        tf=timeframe,
        snapshot=_snapshot(bars),
        crossings=Crossings(**found.crossings),
        age_seconds=age_s(bars, LENGTHS[timeframe], now),
        stale=is_stale(symbol, bars, LENGTHS[timeframe], now),
        source=source,
    )


def _snapshot(bars: Bars) -> Snapshot:
    found = reading(bars.close)
    last = found.last
    return Snapshot(
        price=found.price,
        ema9=last.ema9,
        ma10=last.ma10,
        macd=last.macd,
        signal=last.signal,
        hist=last.hist,
        rsi=last.rsi,
        bb_upper=last.bb_upper,
        bb_middle=last.bb_middle,
        bb_lower=last.bb_lower,
        time=opened(bars),
    )


def _not_ready(symbol: str, timeframe: ChartTimeframe, there: int, source: str, *, strict: bool) -> NotReady:
    if strict:
        raise INSUFFICIENT_DATA(
            f"{symbol} has {there} closed bars of {timeframe}, and {BARS_NEEDED} are needed",
            symbol=symbol,
            bars_available=there,
            bars_needed=BARS_NEEDED,
        )
    return NotReady(
        ready=False,
        reason=INSUFFICIENT,
        symbol=symbol,
        tf=timeframe,
        bars_available=there,
        bars_needed=BARS_NEEDED,
        error_code=int(INSUFFICIENT_DATA.code),
        source=source,
    )
