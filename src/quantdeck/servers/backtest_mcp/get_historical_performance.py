"""get_historical_performance: what a strategy has come to, as it was measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import DATABASE_ERROR, Market, tradestream
from quantdeck.domain.performance import Stretch, by_month, tally
from quantdeck.servers.backtest_mcp.run_backtest import STRATEGY_NOT_FOUND
from quantdeck.sources.sql.performance import Environment, Performance

INVALID_PERIOD = ErrorCode("INVALID_PERIOD", "Specified period is not supported", 400)
NO_PERFORMANCE_DATA = ErrorCode("NO_PERFORMANCE_DATA", "No performance data available for this strategy", 404)

PERIODS = {"1w": timedelta(7), "1m": timedelta(30), "3m": timedelta(90), "6m": timedelta(180), "1y": timedelta(365)}
PREFERRED: tuple[Environment, ...] = ("LIVE", "PAPER", "BACKTEST")
"""What was traded tells more than what would have been; the two are never added up."""


Month = TypedDict(
    "Month",
    {"month": str, "signals": int, "accuracy": float | None, "return": float | None, "sharpe": float | None},
)


@dataclass(frozen=True, slots=True)
class HistoricalPerformance:
    total_signals: Annotated[int, Field(description="Closed trades")]
    accuracy: Annotated[float | None, Field(description="Share of them that won")]
    avg_return: Annotated[float | None, Field(description="Of a trade")]
    sharpe: Annotated[float | None, Field(description="Annual; the mean by trades")]
    performance_by_month: Annotated[list[Month], Field(description="Oldest first; return is the sum of its trades'")]
    environment: Annotated[Environment, Field(description="How it was measured; PAPER is forward, without money")]


@tradestream.tool(cache_s=300, errors=(STRATEGY_NOT_FOUND, INVALID_PERIOD, NO_PERFORMANCE_DATA, DATABASE_ERROR))
async def get_historical_performance(
    performance: Performance,
    now: Now,
    strategy_id: Annotated[str, Field(description="Of an implementation")],
    symbol: Annotated[Market | None, Field(description="Trading pair or ticker; all that it traded if unsaid")] = None,
    period: Annotated[
        Literal["1w", "1m", "3m", "6m", "1y"], Rejects(INVALID_PERIOD), Field(description="m is a month")
    ] = "3m",
) -> HistoricalPerformance:
    """Get historical performance metrics for a strategy"""
    found = await performance.stretches(strategy_id, since=now - PERIODS[period], symbol=symbol, as_of=now)
    if found is None:
        raise STRATEGY_NOT_FOUND(
            f"Strategy {strategy_id[:80]!r} not found; get_top_strategies lists the ids there are",
            strategy_id=strategy_id[:80],
        )
    measured = [(environment, found[environment]) for environment in PREFERRED if environment in found]
    if not measured:
        on = f" on {symbol}" if symbol else ""
        raise NO_PERFORMANCE_DATA(
            f"No performance found for strategy {strategy_id[:80]}{on} in the last {PERIODS[period].days} days",
            strategy_id=strategy_id[:80],
            period=period,
        )
    environment, held = measured[0]
    return _told(environment, held)


def _told(environment: Environment, held: list[Stretch]) -> HistoricalPerformance:
    whole = tally(held)
    months: list[Month] = [
        {
            "month": month, "signals": one.trades, "accuracy": one.accuracy, "return": one.earned, "sharpe": one.sharpe,
        }
        for month, one in by_month(held)
    ]  # fmt: skip
    return HistoricalPerformance(whole.trades, whole.accuracy, whole.average, whole.sharpe, months, environment)
