"""get_top_strategies: the ranking of a symbol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import DATABASE_ERROR, INVALID_SYMBOL, Clamp, Offset, Page, Symbol, tradestream
from quantdeck.domain.performance import score
from quantdeck.sources.sql.strategies import Metric, RankedStrategy, Strategies

INVALID_METRIC = ErrorCode("INVALID_METRIC", "Specified metric is not supported", 400)
SYMBOL_NOT_FOUND = ErrorCode("SYMBOL_NOT_FOUND", "No strategies found for the given symbol", 404)


@dataclass(frozen=True)  # without slots, which take orjson six times as long to write
class TopStrategy:
    strategy_id: str
    name: str
    score: Annotated[float | None, Field(description="The metric on a scale of 0 to 1")]
    sharpe: float | None
    accuracy: Annotated[float | None, Field(description="Share of signals that were right")]
    signals_count: int


@tradestream.tool(cache_s=30, errors=(INVALID_SYMBOL, SYMBOL_NOT_FOUND, DATABASE_ERROR, INVALID_METRIC))
async def get_top_strategies(
    strategies: Strategies,
    now: Now,
    symbol: Annotated[Symbol, Field(description="Trading pair e.g. ETH/USD")],
    limit: Annotated[int, Clamp(1, 100), Field(description="Number of strategies to return per page")] = 5,
    offset: Annotated[Offset, Field(description="Number of strategies to skip for pagination")] = 0,
    metric: Annotated[
        Metric, Rejects(INVALID_METRIC), Field(description="What to rank by; also what score expresses")
    ] = "sharpe",
) -> Page[TopStrategy]:
    """Fetch top N strategies for a symbol ranked by performance score"""
    best, total = await strategies.ranked(symbol, by=metric, offset=offset, limit=limit, as_of=now)
    if total == 0:
        raise SYMBOL_NOT_FOUND(f"No strategies found for {symbol}", symbol=symbol)
    return Page.of([_scored(found, metric) for found in best], offset, limit, total)


def _scored(found: RankedStrategy, metric: Metric) -> TopStrategy:
    figures = {"sharpe": found.sharpe, "accuracy": found.accuracy, "return": found.earned}
    return TopStrategy(
        strategy_id=found.strategy_id,
        name=found.name,
        score=score(metric, figures[metric]),
        sharpe=found.sharpe,
        accuracy=found.accuracy,
        signals_count=found.signals_count,
    )
