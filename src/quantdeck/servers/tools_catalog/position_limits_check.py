"""risk.position_limits_check: whether a strategy's trade keeps within its limits, and the largest that would."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import NotConfigured, SourceError
from quantdeck.dialects.catalog import INVALID_ARGS, MISSING_CONFIGURATION, catalog
from quantdeck.domain.holdings import Holding, worth
from quantdeck.domain.position_limits import RULES, Verdict, are_set, held_against, value_at_risk
from quantdeck.domain.risk import Check, Side, Trade
from quantdeck.servers.tools_catalog.correlation import CorrelationId
from quantdeck.servers.tools_catalog.instruments import Spelt, canonical
from quantdeck.servers.tools_catalog.prices import daily_deviation, hourly, last_close, worth_in
from quantdeck.sources.candles import Candles
from quantdeck.sources.positions import Positions
from quantdeck.sources.sql.portfolio import Portfolio
from quantdeck.sources.violations import Violations

log = logging.getLogger(__name__)

Held = dict[str, tuple[float, float | None]]
"""By symbol what is held, a short below 0, and the price that was told with it, if one was."""

SIDES: dict[str, Side] = {"buy": "BUY", "long": "BUY", "sell": "SELL", "short": "SELL"}
RETURNS = 48
"""Hours whose moves say how far the instrument moves in a day."""


# Comments, for a docstring would be the schema's description, and the spec has none.


# What cannot be told is left out.
class RiskMetrics(TypedDict):
    position_utilization: Annotated[float, Field(ge=0, le=1)]
    instrument_concentration: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    strategy_exposure: NotRequired[float]
    var_impact: NotRequired[float]


# One rule; without a value where it cannot be told, and then it is violated.
class LimitApplied(TypedDict):
    rule_name: str
    limit_type: str
    threshold: float
    current_value: NotRequired[float]
    violated: bool


class Checked(TypedDict):
    allowed: Annotated[bool, Field(description="Whether the position is allowed")]
    reason: Annotated[str, Field(description="Explanation for decision")]
    max_qty: Annotated[float, Field(ge=0, description="Maximum allowed quantity")]
    risk_metrics: RiskMetrics
    limits_applied: list[LimitApplied]


def _by_instrument(given: dict[str, float] | None) -> dict[str, float] | None:
    """What is held by its canonical name, in order: another spelling of the same is the same question."""
    if given is None:
        return None
    held: dict[str, float] = {}
    for spelt, quantity in given.items():
        if (symbol := canonical(spelt)) in held:
            raise ValueError(f"has {symbol} twice, in two spellings")
        held[symbol] = quantity
    return dict(sorted(held.items()))


@catalog.tool(
    "risk.position_limits_check",
    deadline_ms=100,
    p95_ms=50,
    per_minute=500,
    cache_s=60,
    vary=("account",),
    revised=True,
    errors=(MISSING_CONFIGURATION,),
)
async def position_limits_check(
    portfolio: Portfolio,
    positions: Positions,
    candles: Candles,
    violations: Violations,
    caller: Caller,
    corr_id: CorrelationId,
    now: Now,
    strategy: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]+$", max_length=50, description="Strategy identifier")],
    instrument: Annotated[Spelt, Field(description="Trading instrument")],
    qty: Annotated[float, Field(gt=0, description="Requested position size (positive number)")],
    side: Annotated[Literal["buy", "sell", "long", "short"], Field(description="Position direction")],
    current_positions: Annotated[
        dict[str, float] | None,
        Field(description="Current positions by instrument"),
        AfterValidator(_by_instrument),
    ] = None,
) -> Checked:
    """Validate trading intent against configured position limits and risk rules."""
    owner, symbol = caller.account or portfolio.account, canonical(instrument)
    book = await portfolio.book(owner, symbol, strategy=strategy, as_of=now)
    if book is None or not book.limited or not are_set(book.limits):
        raise MISSING_CONFIGURATION(
            f"Risk limits not configured for strategy {strategy!r} of the account {owner!r}: bring some in under "
            "risk_limits by `quantdeck import desk`",
            strategy=strategy,
            account=owner,
        )
    if current_positions is None:
        held: Held = {one.symbol: (one.quantity, one.price) for one in await positions.held(owner, as_of=now)}
    else:
        held = {name: (quantity, None) for name, quantity in current_positions.items()}
    values = _Values(candles, book.account.currency, now)
    unit = await values.of(symbol, held.get(symbol, (0.0, None))[1])
    if unit is None:
        raise INVALID_ARGS(
            f"Invalid arguments: what {instrument} is worth in {book.account.currency} is not known, by bars or by a "
            "position",
            instrument=instrument,
        )
    account = replace(book.account, available=None, holdings=await values.holdings(held))
    trade = Trade(values.name(symbol), SIDES[side], qty, unit)
    found = held_against(trade, account, book.limits)
    if not found.allowed:
        await _tell(violations, _violation(found, strategy, instrument, qty, side, now), corr_id)
    return {
        "allowed": found.allowed,
        "reason": found.reason,
        "max_qty": found.max_size,
        "risk_metrics": await _metrics(found, candles, symbol, now),
        "limits_applied": [_told(check) for check in found.checks],
    }


class _Values:
    """What units are worth in an account's currency."""

    def __init__(self, candles: Candles, currency: str, now: Now) -> None:
        self._candles, self._currency, self._now = candles, currency, now

    def name(self, symbol: str) -> str:
        """What it is called where its price is what a unit is worth in that currency."""
        pair = symbol if "/" in symbol else f"{symbol}/USD"
        return pair if worth(pair, 1.0, self._currency) else f"{symbol.replace('/', '')}/{self._currency}"

    async def of(self, symbol: str, told: float | None) -> float | None:
        """By the newest bar, else by the price that was told."""
        price = await last_close(self._candles, symbol, self._now) or told
        return None if price is None else await worth_in(self._candles, symbol, price, self._currency, self._now)

    async def holdings(self, held: Held) -> tuple[Holding, ...]:
        """At the prices that were told, else by the newest bars. One that nobody can value is there without a value."""
        found = []
        for symbol, (quantity, told) in held.items():
            if told is None:
                value = await self.of(symbol, None)
            else:
                value = await worth_in(self._candles, symbol, told, self._currency, self._now)
            if quantity:
                name, price = (f"{symbol}/?", 1.0) if value is None else (self.name(symbol), value)
                found.append(Holding(name, "LONG" if quantity > 0 else "SHORT", abs(quantity), price, price))
        return tuple(found)


async def _metrics(found: Verdict, candles: Candles, symbol: str, now: Now) -> RiskMetrics:
    figures = {
        "position_utilization": found.utilization,
        "instrument_concentration": found.concentration,
        "strategy_exposure": found.exposure,
        "var_impact": value_at_risk(found.grown, await _deviation(candles, symbol, now)),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}  # type: ignore[return-value]


async def _deviation(candles: Candles, symbol: str, now: Now) -> float | None:
    """How far it moves in a day; None where there are no bars, or too few."""
    with suppress(NotConfigured):
        if (series := await candles.series(symbol, as_of=now)) is not None:
            bars, length = await hourly(candles, series, RETURNS + 1, now)
            return daily_deviation(bars, symbol, length)
    return None


def _told(check: Check) -> LimitApplied:
    told: LimitApplied = {
        "rule_name": check.rule,
        "limit_type": RULES[check.rule],
        "threshold": check.limit,
        "violated": check.breached,
    }
    return {**told, "current_value": check.used} if isfinite(check.used) else told


def _violation(found: Verdict, strategy: str, instrument: str, qty: float, side: str, now: Now) -> dict[str, Any]:
    broken = [check.rule for check in found.checks if check.breached]
    return {
        "violation_type": broken[0],
        "symbol": instrument,
        "message": found.reason,
        "severity": "warning",
        "timestamp": iso(now),
        "metadata": {"strategy": strategy, "side": side, "qty": qty, "max_qty": found.max_size, "rules": broken},
    }


async def _tell(violations: Violations, violation: dict[str, Any], corr_id: str) -> None:
    """A verdict stands whether anybody could be told of it or not."""
    try:
        await violations.tell(violation, corr_id=corr_id)
    except SourceError as error:
        log.warning("risk_violation_untold", extra={"fields": {**violation, "why": error.message}})
