"""A strategy's trade held against its limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.domain.holdings import Holding
from quantdeck.domain.position_limits import RULES, Verdict, are_set, held_against, value_at_risk
from quantdeck.domain.risk import Account, Limits, Trade

SYMBOL = "BTC/USD"


def lot(quantity: float, symbol: str = SYMBOL, price: float = 100.0) -> Holding:
    return Holding(symbol, "LONG" if quantity > 0 else "SHORT", abs(quantity), price, price)


def account(*holdings: Holding, lost_today: float = 0.0) -> Account:
    return Account("USD", 10_000.0, None, 10_000.0, lost_today, holdings)


def asked(limits: Limits, *holdings: Holding, side="BUY", size=1.0, unit=100.0, **said) -> Verdict:
    return held_against(Trade(SYMBOL, side, size, unit), account(*holdings, **said), limits)


def rules(found: Verdict) -> dict[str, tuple[float, float, bool]]:
    return {check.rule: (check.used, check.limit, check.breached) for check in found.checks}


def limited(**said: Any) -> Limits:
    return Limits(**said)


SHORTS = {"allow_short": True}


def test_every_rule_that_is_set_is_told_and_no_other():
    found = asked(Limits(max_units=5, max_exposure=1000, **SHORTS), lot(2), lot(3, "ETH/USD"))
    assert rules(found) == {"max_units": (3.0, 5.0, False), "max_exposure": (600.0, 1000.0, False)}
    assert (found.allowed, found.exposure, found.concentration, found.grown) == (True, 600.0, 0.5, 100.0)
    assert (found.utilization, found.max_size) == (0.6, 3.0)


def test_one_broken_rule_hides_no_other():
    found = asked(
        Limits(max_units=5, max_position_size=100, max_exposure=10_000, max_daily_loss=1), lot(5), lost_today=2
    )
    assert {rule for rule, (_, _, broken) in rules(found).items() if broken} == {
        "max_units", "max_position_size", "max_daily_loss",
    }  # fmt: skip
    assert (found.allowed, found.max_size, found.utilization) == (False, 0.0, 1.0)
    assert all(rule in found.reason for rule in ("max_units", "max_position_size", "max_daily_loss"))


@pytest.mark.parametrize("side, held", [("SELL", 7.0), ("BUY", -7.0)])
def test_what_only_reduces_passes_and_is_told_as_it_leaves_the_position(side, held):
    limits = Limits(max_units=5, max_open_positions=0, max_daily_loss=1)
    found = asked(limits, lot(held), side=side, lost_today=100)
    told = rules(found)
    assert (found.allowed, found.max_size, found.grown) == (True, 7.0, -100.0)
    assert told["max_units"] == (6.0, 5.0, False)
    assert told["max_open_positions"] == (1, 0, False)
    assert not any(broken for _, _, broken in told.values())


def test_shares_are_clipped():
    found = asked(Limits(max_units=5), size=1e6)
    assert (found.utilization, found.concentration) == (1.0, 1.0)


def test_a_short_is_exposure_too_and_nets_nothing():
    found = asked(Limits(max_exposure=1000, **SHORTS), lot(-6, "ETH/USD"), size=5)
    assert (found.allowed, found.exposure, found.max_size) == (False, 1100.0, 4.0)


def test_what_cannot_be_valued_is_never_taken_for_nothing():
    unknown = Holding("XYZ/?", "LONG", 1.0, 1.0, 1.0)
    found = asked(Limits(max_exposure=1e9), unknown)
    assert (found.allowed, found.exposure, found.max_size) == (False, None, 0.0)
    assert asked(Limits(max_units=5), unknown).allowed, "a rule that does not need it is held against"


def test_limits_of_nothing_are_none():
    assert not are_set(Limits())
    assert not are_set(Limits(allow_short=True))
    assert all(are_set(limited(**{rule: 0})) for rule in RULES if rule != "allow_short")


def test_an_impact_is_below_zero_where_the_trade_makes_the_position_smaller():
    assert value_at_risk(1000.0, 0.02) == pytest.approx(32.897, abs=1e-3)
    assert value_at_risk(-1000.0, 0.02) == pytest.approx(-32.897, abs=1e-3)
    assert value_at_risk(1000.0, None) is None


some = st.none() | st.floats(0, 1e6)
quantities = st.floats(-1e4, 1e4).filter(lambda quantity: abs(quantity) > 1e-6)


@settings(max_examples=150)
@given(
    limits=st.builds(
        Limits, max_units=some, max_position_size=some, max_position_pct=some, max_exposure=some, max_exposure_pct=some,
        max_open_positions=st.none() | st.integers(0, 3), max_daily_loss=some, allow_short=st.booleans(),
    ),
    holdings=st.lists(quantities.map(lot), max_size=1),
    others=st.lists(quantities.map(lambda quantity: lot(quantity, "ETH/USD", 3.7)), max_size=1),
    side=st.sampled_from(["BUY", "SELL"]),
    size=st.floats(1e-6, 1e6),
    unit=st.floats(1e-3, 1e5),
)  # fmt: skip
def test_a_verdict_agrees_with_itself(limits, holdings, others, side, size, unit):
    def verdict(size):
        return held_against(Trade(SYMBOL, side, size, unit), account(*holdings, *others), limits)

    found = verdict(size)
    assert found.allowed is not any(check.breached for check in found.checks)
    assert found.max_size >= (size if found.allowed else 0)
    if found.max_size > 0:
        assert verdict(found.max_size).allowed
    if not found.allowed:
        assert found.max_size < size
    assert 0 <= found.utilization <= 1
    assert found.concentration is None or 0 <= found.concentration <= 1
    assert {check.rule for check in found.checks} <= RULES.keys()
    set_ = {rule for rule in RULES if getattr(limits, rule) is not None and rule != "allow_short"}
    assert set_ <= {check.rule for check in found.checks}
