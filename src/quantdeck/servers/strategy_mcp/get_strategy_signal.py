"""get_strategy_signal: what one strategy says now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import ErrorCode
from quantdeck.dialects.tradestream import DATABASE_ERROR, INVALID_SYMBOL, Symbol, tradestream
from quantdeck.domain.consensus import CURRENT_FOR, Action
from quantdeck.sources.sql.strategies import Strategies

STRATEGY_NOT_FOUND = ErrorCode("STRATEGY_NOT_FOUND", "Strategy with specified ID does not exist", 404)
NO_SIGNAL = ErrorCode("NO_SIGNAL", "Strategy has no current signal for this symbol", 404)


@dataclass(frozen=True, slots=True)
class CurrentSignal:
    signal: Action
    confidence: float
    triggered_at: datetime
    parameters: Annotated[dict[str, Any], Field(description="The strategy's own parameters")]


@tradestream.tool(cache_s=10, errors=(STRATEGY_NOT_FOUND, INVALID_SYMBOL, NO_SIGNAL, DATABASE_ERROR))
async def get_strategy_signal(
    strategies: Strategies,
    now: Now,
    strategy_id: Annotated[str, Field(description="Strategy identifier")],
    symbol: Symbol,
) -> CurrentSignal:
    """Get the current signal from a specific strategy for a symbol"""
    strategy = await strategies.find(strategy_id, symbol, as_of=now)
    if strategy is None:
        raise STRATEGY_NOT_FOUND(
            f"Strategy {strategy_id[:80]!r} not found; get_top_strategies lists the ids there are",
            strategy_id=strategy_id[:80],
        )
    signal = strategy.signal
    if signal is None or signal.triggered_at < now - CURRENT_FOR:
        raise NO_SIGNAL(
            f"No current signal found for {symbol} from strategy {strategy.strategy_id}",
            strategy_id=strategy.strategy_id,
            symbol=symbol,
            last_triggered_at=None if signal is None else iso(signal.triggered_at),
        )
    return CurrentSignal(signal.action, signal.strength, signal.triggered_at, strategy.parameters)
