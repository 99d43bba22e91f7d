"""Conditions of alerts, and when a rule begins to hold."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.domain.alerts import CONDITIONS, begun, rules_of
from quantdeck.domain.crossings import BARS_NEEDED, RULES, reading

SPEC = json.loads(Path("docs/spec/chart_signals.json").read_text())


def test_every_rule_is_some_conditions_and_every_condition_the_specs():
    (tool,) = (tool for tool in SPEC["tools"] if tool["name"] == "subscribe_alerts")
    condition = tool["input_schema"]["properties"]["conditions"]["items"]["properties"]
    assert CONDITIONS.keys() == set(condition["type"]["enum"])
    assert {rule for kind in CONDITIONS for rule in rules_of(kind, None)} == RULES.keys()
    for kind, direction in product(CONDITIONS, ("up", "down")):
        if len(CONDITIONS[kind]) == 1:
            with pytest.raises(ValueError, match=f"{kind} has no direction"):
                rules_of(kind, direction)
        else:
            assert len(rules_of(kind, direction)) == 1


def test_up_is_up_and_down_is_down():
    assert rules_of("macd_cross", "up") == {"macd_cross_up"}
    assert rules_of("ema_cross", "down") == {"ema_support_lost"}
    assert rules_of("bb_breakout", "down") == {"bb_breakout_dn"}
    assert rules_of("ema_cross", None) == {"ema_support_lost", "ema_reclaim"}


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_rule_begins_where_it_holds_and_did_not_before(seed):
    closes = 100 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0, 5e-3, 80)))
    for many in range(BARS_NEEDED, 81):
        now, before = (set(reading(closes[:place]).signals) for place in (many, many - 1))
        assert begun(closes[:many]) == now - before


def test_too_few_bars_begin_nothing():
    closes = np.linspace(100, 300, BARS_NEEDED)
    assert begun(closes[:-1]) == begun(closes[:0]) == frozenset()
