"""get_recent_decisions: what was decided, newest first."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import DATABASE_ERROR, INVALID_SYMBOL, Clamp, Offset, Page, Symbol, tradestream
from quantdeck.domain.consensus import Action
from quantdeck.domain.decisions import spelt
from quantdeck.sources.sql.decisions import Decision, Decisions

INVALID_ACTION = ErrorCode("INVALID_ACTION", "Action filter must be BUY, SELL, or HOLD", 400)


@tradestream.tool(cache_s=30, revised=True, errors=(INVALID_SYMBOL, INVALID_ACTION, DATABASE_ERROR))
async def get_recent_decisions(
    decisions: Decisions,
    now: Now,
    symbol: Annotated[
        Symbol | None, Rejects(INVALID_SYMBOL), Field(description="Trading pair; all of them where it is left out")
    ] = None,
    limit: Annotated[int, Clamp(1, 100), Field(description="Number of decisions to return per page")] = 10,
    offset: Annotated[Offset, Field(description="Number of decisions to skip, counted from the newest")] = 0,
    action: Annotated[
        Annotated[Action, BeforeValidator(spelt)] | None,
        Rejects(INVALID_ACTION),
        Field(description="Only decisions to do this"),
    ] = None,
) -> Page[Decision]:
    """Get recent agent decisions for a symbol"""
    found, total = await decisions.recent(symbol=symbol, action=action, offset=offset, limit=limit, as_of=now)
    return Page.of(found, offset, limit, total)
