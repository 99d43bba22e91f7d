"""validate_trade: whether a trade keeps within an account's limits, and the largest that would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now
from quantdeck.core.errors import ErrorCode, Rejects, ToolError
from quantdeck.dialects.tradestream import (
    DATABASE_ERROR,
    INVALID_PARAMETER,
    INVALID_SYMBOL,
    NOT_FOUND,
    UNAUTHORIZED,
    Symbol,
    tradestream,
)
from quantdeck.domain.holdings import worth
from quantdeck.domain.risk import Assessment, Check, Side, Trade, assess, opens
from quantdeck.sources.sql.portfolio import Portfolio

INVALID_SIDE = ErrorCode("INVALID_SIDE", "Trade side must be BUY or SELL", 400)
INVALID_SIZE = ErrorCode("INVALID_SIZE", "Trade size must be positive", 400)
INSUFFICIENT_BALANCE = ErrorCode("INSUFFICIENT_BALANCE", "Account balance insufficient for trade", 422)


@dataclass(frozen=True, slots=True)
class Verdict:
    valid: bool
    reason: Annotated[str, Field(description="Every rule that is broken, or the one that is nearest to it")]
    max_size: Annotated[float, Field(description="The largest size that would be valid")]
    risk_score: Annotated[
        float, Field(description="0 to 1: the share used of the tightest limit; 0 if the trade only closes")
    ]


@tradestream.tool(
    secret="portfolio",
    errors=(INVALID_SYMBOL, INVALID_SIDE, INVALID_SIZE, INSUFFICIENT_BALANCE, UNAUTHORIZED, DATABASE_ERROR),
)
async def validate_trade(
    portfolio: Portfolio,
    caller: Caller,
    now: Now,
    symbol: Symbol,
    side: Annotated[Side, Rejects(INVALID_SIDE), Field(description="BUY closes shorts first, SELL longs")],
    size: Annotated[
        float, Rejects(INVALID_SIZE), Field(gt=0, allow_inf_nan=False, description="Units of the base, such as 0.5 BTC")
    ],
    price: Annotated[
        float | None,
        Field(gt=0, allow_inf_nan=False, description="Of one unit; else that of the open position or last signal"),
    ] = None,
) -> Verdict:
    """Validate a proposed trade against risk rules"""
    account = caller.account or portfolio.account
    book = await portfolio.book(account, symbol, as_of=now)
    if book is None:
        raise NOT_FOUND(f"Trading account {account!r} not found", account=account)
    quoted, origin = (price, "") if price is not None else book.prices[0] if book.prices else (None, "")
    unit = None if quoted is None else worth(symbol, quoted, book.account.currency)
    trade = Trade(symbol, side, size, unit)
    if unit is None and opens(trade, book.account):
        raise _unpriced(symbol) if quoted is None else _without_rate(symbol, book.account.currency)
    found = assess(trade, book.account, book.limits)
    at = f" (at {quoted:,.10g}, {origin})" if origin and found.opens else ""
    cost = found.breach("balance")
    if cost is not None and found.breach("allow_short") is None:
        raise _insufficient(found, cost, book.account.currency, at)
    return Verdict(not found.breaches, f"{_reason(found)}{at}", found.max_size, found.risk_score)


def _reason(found: Assessment) -> str:
    if found.breaches:
        said = "; ".join(check.said for check in found.breaches)
        return said[0].upper() + said[1:]
    if found.tightest is None:
        return "It only closes what is held, which no limit forbids"
    return f"Within all limits; the tightest, {found.tightest.rule}, is used to {found.tightest.share:.0%}"


def _insufficient(found: Assessment, cost: Check, currency: str, at: str) -> ToolError:
    besides = [check.said for check in found.breaches if check is not cost]
    also = f". Besides, {'; '.join(besides)}" if besides else ""
    return INSUFFICIENT_BALANCE(
        f"Balance insufficient: {cost.said}{at}. The largest valid size is {found.max_size!r}{also}",
        required=cost.used,
        available=cost.limit,
        currency=currency,
        max_size=found.max_size,
        also_breached=[check.rule for check in found.breaches if check is not cost],
    )


def _unpriced(symbol: str) -> ToolError:
    return INVALID_PARAMETER(
        f"No price of {symbol} is known: there is neither an open position with one nor a signal of the last 24 hours. "
        "Give `price`",
        symbol=symbol,
    )


def _without_rate(symbol: str, currency: str) -> ToolError:
    return INVALID_SYMBOL(
        f"{symbol} is not supported here: the account is in {currency}, and the pair's value in that is not known",
        symbol=symbol,
        currency=currency,
    )
