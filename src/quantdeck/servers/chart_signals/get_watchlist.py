"""get_watchlist: every watched symbol's price and what crosses, at one minute."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured, QueryFailed, SourceError, ToolError
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

    async def watched(symbol: str) -> tuple[Watched, str, SourceError | None]:
        async with turns:
            return await _watched(candles, symbol, now)

    async with asyncio.TaskGroup() as group:
        asked = {symbol: group.create_task(watched(symbol)) for symbol in file.watchlist.symbols}
    found = {symbol: task.result() for symbol, task in asked.items()}
    if (failed := [error for *_, error in found.values() if error is not None]) and len(failed) == len(found):
        raise failed[0]  # nothing can be read, which is no property of a symbol
    sources = sorted({source for _, source, _ in found.values()})
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


async def _watched(candles: Candles, symbol: str, now: Now) -> tuple[Watched, str, SourceError | None]:
    """One symbol, by one read, and its store. One that cannot be read is told, and hides no other."""
    try:
        bars, source = await closed_bars(candles, symbol, TIMEFRAME, now)
    except NotConfigured:
        raise
    except (SourceError, ToolError) as error:
        one = Watched(symbol=symbol, price=None, rsi=None, signals=[], note=error.message)
        away = isinstance(error, SourceError) and not isinstance(error, QueryFailed)
        return one, candles.source, error if away else None  # type: ignore[return-value]
    if len(bars) < BARS_NEEDED:
        price = float(bars.close[-1]) if len(bars) else None
        return Watched(symbol=symbol, price=price, rsi=None, signals=[], note=INSUFFICIENT), source, None
    at = reading(bars.close)
    one = Watched(symbol=symbol, price=at.price, rsi=at.last.rsi, signals=at.signals)  # type: ignore[typeddict-item]
    return one, source, None
