"""get_positions: what is held."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects
from quantdeck.dialects.tradestream import (
    DATABASE_ERROR,
    INVALID_SYMBOL,
    Clamp,
    Offset,
    Page,
    Symbol,
    tradestream,
)
from quantdeck.domain.holdings import HoldingSide
from quantdeck.sources.sql.portfolio import Portfolio, Position

UNAUTHORIZED = ErrorCode("UNAUTHORIZED", "Not authorized to access portfolio data", 401)


@dataclass  # made and written by the dozen: frozen is four times as slow to make, and slots six times to write
class OpenPosition:
    symbol: str
    side: HoldingSide
    size: Annotated[float, Field(description="Units of the base")]
    entry_price: float
    current_price: Annotated[float | None, Field(description="The last price known")]
    unrealized_pnl: Annotated[float | None, Field(description="At that price, in the pair's quote currency")]
    opened_at: datetime


@tradestream.tool(secret="portfolio", errors=(INVALID_SYMBOL, UNAUTHORIZED, DATABASE_ERROR))
async def get_positions(
    portfolio: Portfolio,
    caller: Caller,
    now: Now,
    symbol: Annotated[Symbol | None, Rejects(INVALID_SYMBOL), Field(description="Optional filter by symbol")] = None,
    limit: Annotated[int, Clamp(1, 200), Field(description="Number of positions to return per page")] = 50,
    offset: Annotated[Offset, Field(description="Number of positions to skip for pagination")] = 0,
) -> Page[OpenPosition]:
    """Get current open positions"""
    account = caller.account or portfolio.account
    found, total = await portfolio.positions(account, symbol, offset=offset, limit=limit, as_of=now)
    return Page.of([_told(position) for position in found], offset, limit, total)


def _told(position: Position) -> OpenPosition:
    held = position.holding
    return OpenPosition(
        held.symbol, held.side, held.size, held.entry_price, held.price, held.gained, position.opened_at
    )
