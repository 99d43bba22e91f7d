"""A strategy's trade held against its limits: each rule that is set, what the trade would do to it, what would fit.

The arithmetic of the rules is `risk`'s; here they are told one by one, whether they are broken or not.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from math import isfinite

from quantdeck.domain.exact import exact
from quantdeck.domain.holdings import Holding, worth
from quantdeck.domain.risk import Account, Assessment, Check, Limits, Trade, assess, left

__all__ = ["RULES", "Verdict", "are_set", "held_against", "value_at_risk"]

RULES = {
    "allow_short": "side",
    "max_open_positions": "count",
    "max_daily_loss": "loss",
    "max_daily_loss_pct": "loss",
    "max_drawdown_pct": "ratio",
    "max_units": "quantity",
    "max_position_size": "notional",
    "max_position_pct": "notional",
    "max_exposure": "notional",
    "max_exposure_pct": "notional",
}
"""Of each rule, what it limits. A share of the balance is told as the amount that it comes to."""

_GROWING = ("max_units", "max_position_size", "max_position_pct", "max_exposure", "max_exposure_pct")

Z_95 = 1.6448536269514722
"""One loss in twenty is larger, if moves were normal."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`exposure` is None where a position cannot be valued; shares are 0 to 1."""

    allowed: bool
    reason: str
    max_size: float
    checks: tuple[Check, ...]
    utilization: float
    concentration: float | None
    exposure: float | None
    grown: float


def are_set(limits: Limits) -> bool:
    """Whether there is a single number to hold a trade against."""
    return any(getattr(limits, field.name) is not None for field in fields(Limits) if field.name != "allow_short")


def held_against(trade: Trade, account: Account, limits: Limits) -> Verdict:
    """Every rule that is set; `grown` is by how much the trade enlarges the position, in the account's currency."""
    found = assess(trade, account, limits)
    checks = (found.checks if found.opens else left(trade, account, limits)) + _of_shorts(limits, found)
    assert trade.unit is not None
    before, after = _position(trade, account, Decimal()), _position(trade, account, exact(trade.size))
    unit = exact(trade.unit)
    others = _others(trade, account)
    gross = None if others is None else others + abs(after) * unit
    return Verdict(
        allowed=not found.breaches,
        reason=_reason(found),
        max_size=max(found.max_size, trade.size) if not found.breaches else found.max_size,
        checks=checks,
        utilization=max((check.share for check in checks if check.rule in _GROWING), default=0.0),
        concentration=None if gross is None else _share(abs(after) * unit, gross),
        exposure=_finite(gross),
        grown=float((abs(after) - abs(before)) * unit),
    )


def value_at_risk(grown: float, daily_deviation: float | None) -> float | None:
    """By how much the loss grows that one day in twenty exceeds; below 0 where the trade makes it smaller."""
    return None if daily_deviation is None else _finite(Z_95 * daily_deviation * grown)


def _of_shorts(limits: Limits, found: Assessment) -> tuple[Check, ...]:
    """The rule is told also where nobody breaks it."""
    if limits.allow_short or found.breach("allow_short") is not None:
        return ()
    return (Check("allow_short", 0.0, 0.0, False, "", ""),)


def _reason(found: Assessment) -> str:
    if found.breaches:
        said = "; ".join(check.said for check in found.breaches)
        return said[0].upper() + said[1:]
    if not found.opens:
        return "It only reduces what is held, which no limit forbids"
    if found.tightest is None:
        return "Within all limits"
    return f"Within all limits; the tightest, {found.tightest.rule}, is used to {found.tightest.share:.0%}"


def _position(trade: Trade, account: Account, size: Decimal) -> Decimal:
    """What is held when so much of the trade is done; shorts are below 0."""
    held = sum((_signed(one) for one in account.holdings if one.symbol == trade.symbol), Decimal())
    return held + (size if trade.side == "BUY" else -size)


def _signed(holding: Holding) -> Decimal:
    return exact(holding.size) if holding.side == "LONG" else -exact(holding.size)


def _others(trade: Trade, account: Account) -> Decimal | None:
    """What the other positions are worth, long and short alike; None where one of them cannot be valued."""
    total = Decimal()
    for one in account.holdings:
        if one.symbol != trade.symbol:
            unit = worth(one.symbol, one.price or one.entry_price, account.currency)
            if unit is None:
                return None
            total += exact(one.size) * exact(unit)
    return total


def _share(part: Decimal, whole: Decimal) -> float:
    return min(max(float(part / whole), 0.0), 1.0) if whole else 0.0


def _finite(amount: Decimal | float | None) -> float | None:
    if amount is None:
        return None
    number = float(amount)
    return number if isfinite(number) else None
