"""get_watchlist: every watched symbol's price and what crosses, at one minute."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.core.errors import QueryFailed, ToolError
from quantdeck.dialects.chart import INVALID_TIMEFRAME, Manner, chart
from quantdeck.domain.crossings import BARS_NEEDED, reading
from quantdeck.servers.chart_signals.closed import INSUFFICIENT, closed_bars
from quantdeck.servers.chart_signals.get_signals import Time
from quantdeck.sources.candles import Candles

TIMEFRAME = "1min"
AT_ONCE = 8
"""Symbols that are read at a time."""

Signal = Literal[
    "macd_cross_up", "macd_cross_dn", "ema_support_lost", "ema_reclaim", "rsi_overbought", "rsi_oversold",
    "bb_squeeze", "bb_breakout_up", "bb_breakout_dn",
]  # fmt: skip


class Watched(TypedDict):
    symbol: str
    price: float | None
    rsi: float | None
    signals: list[Signal]
    note: NotRequired[Annotated[str, Field(description="Why there are no signals")]]


@dataclass(frozen=True, slots=True)
class WatchedSymbols:
    stocks: list[Watched]
    crypto: list[Watched]


@dataclass(frozen=True, slots=True)
class MarketHours:
    stocks: str
    crypto: str


class Watchlist(TypedDict):
    watchlist: WatchedSymbols
    timestamp: Time
    market_hours: MarketHours
    problems: NotRequired[Annotated[list[str], Field(description="Lines of the watchlist's file that name nothing")]]
    source: str


@chart.tool(errors=(INVALID_TIMEFRAME,))
async def get_watchlist(candles: Candles, now: Now, manner: Manner) -> Watchlist:
    """Price, RSI and active signals of every watched symbol, from closed 1min bars"""
    file = manner.call.runtime.options["watchlist"]()
    turns = asyncio.Semaphore(AT_ONCE)

    async def watched(symbol: str) -> tuple[Watched, str]:
        async with turns:
            return await _watched(candles, symbol, now)

    async with asyncio.TaskGroup() as group:
        asked = {symbol: group.create_task(watched(symbol)) for symbol in file.watchlist.symbols}
    found = {symbol: task.result() for symbol, task in asked.items()}
    sources = sorted({source for _, source in found.values()})
    answer = Watchlist(
        watchlist=WatchedSymbols(
            stocks=[found[symbol][0] for symbol in file.watchlist.stocks],
            crypto=[found[symbol][0] for symbol in file.watchlist.crypto],
        ),
        timestamp=now.isoformat(),
        market_hours=MarketHours("9:30 AM - 4:00 PM ET (weekdays)", "24/7"),
        source=manner.came_from(", ".join(sources) or candles.source),
    )
    return {**answer, "problems": list(file.problems)} if file.problems else answer


async def _watched(candles: Candles, symbol: str, now: Now) -> tuple[Watched, str]:
    """One symbol, by one read. One that cannot be read is told, and hides no other."""
    try:
        bars, source = await closed_bars(candles, symbol, TIMEFRAME, now)
    except (QueryFailed, ToolError) as error:
        return Watched(symbol=symbol, price=None, rsi=None, signals=[], note=error.message), candles.source
    if len(bars) < BARS_NEEDED:
        price = float(bars.close[-1]) if len(bars) else None
        return Watched(symbol=symbol, price=price, rsi=None, signals=[], note=INSUFFICIENT), source
    at = reading(bars.close)
    return Watched(symbol=symbol, price=at.price, rsi=at.last.rsi, signals=at.signals), source  # type: ignore[typeddict-item]
