"""get_strategy_consensus: what all active strategies of a symbol say together."""

from __future__ import annotations

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode
from quantdeck.dialects.tradestream import DATABASE_ERROR, INVALID_SYMBOL, Symbol, tradestream
from quantdeck.domain.consensus import CURRENT_FOR, SILENT, Consensus, Vote, consensus
from quantdeck.sources.sql.strategies import Strategies

NO_ACTIVE_STRATEGIES = ErrorCode("NO_ACTIVE_STRATEGIES", "No active strategies found for this symbol", 404)


@tradestream.tool(cache_s=30, errors=(INVALID_SYMBOL, NO_ACTIVE_STRATEGIES, DATABASE_ERROR))
async def get_strategy_consensus(strategies: Strategies, now: Now, symbol: Symbol) -> Consensus:
    """Get aggregated consensus across all active strategies for a symbol"""
    votes = await strategies.votes(symbol, since=now - CURRENT_FOR, as_of=now)
    if not votes:
        raise NO_ACTIVE_STRATEGIES(f"No active strategies found for {symbol}", symbol=symbol)
    return consensus(SILENT if signal is None else Vote(signal.action, signal.strength) for _, signal in votes)
