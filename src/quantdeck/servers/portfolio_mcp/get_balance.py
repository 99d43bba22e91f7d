"""get_balance: what an account has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode
from quantdeck.dialects.tradestream import DATABASE_ERROR, tradestream
from quantdeck.sources.sql.portfolio import Portfolio

UNAUTHORIZED = ErrorCode("UNAUTHORIZED", "Not authorized to access balance data", 401)
ACCOUNT_NOT_FOUND = ErrorCode("ACCOUNT_NOT_FOUND", "Trading account not found", 404)


@dataclass(frozen=True, slots=True)
class AccountBalance:
    total_balance: Annotated[float, Field(description="With the margin that is in use")]
    available_balance: float
    margin_used: float
    unrealized_pnl: Annotated[float | None, Field(description="Of all open positions; null if one cannot be told")]


@tradestream.tool(secret="portfolio", errors=(UNAUTHORIZED, ACCOUNT_NOT_FOUND, DATABASE_ERROR))
async def get_balance(portfolio: Portfolio, caller: Caller, now: Now) -> AccountBalance:
    """Get account balance and available margin"""
    account = caller.account or portfolio.account
    found = await portfolio.balance(account, as_of=now)
    if found is None:
        raise ACCOUNT_NOT_FOUND(f"Trading account {account!r} not found", account=account)
    return AccountBalance(found.total, found.available, found.margin_used, found.unrealized_pnl)
