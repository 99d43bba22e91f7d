"""Each indicator type against a second one in plain Python, which shares nothing with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.backtesting.engine.figures import FIGURES, computed
from quantdeck.domain.arrays import listed
from quantdeck.domain.indicator_types import INDICATORS
from quantdeck.domain.strategy_specs import Computation, RunnableSpec
from tests.backtesting.made import bars_of, params_of, series
from tests.backtesting.plain_figures import PLAIN, Bar, plain
from tests.support.specs import INDICATOR_TYPES

NUMBERS = {"value": 5.0, "multiplier": 1.5, "sc": 0.4, "alpha": 0.6, "longPeriod": 7, "slowPeriod": 20}
PRICE = ("open", "high", "low", "close", "volume")


def test_every_type_that_a_spec_may_name_has_a_figure():
    assert FIGURES.keys() == INDICATORS.keys() == PLAIN.keys() == INDICATOR_TYPES.keys()
    assert len(FIGURES) == 56


@st.composite
def cases(draw, kind):
    return draw(series()), draw(st.sampled_from(PRICE)), params_of(kind, draw, longest=30)


@pytest.mark.parametrize("kind", sorted(FIGURES))
@given(data=st.data())
@settings(max_examples=25)
def test_a_figure_is_that_of_the_plain_loop(kind, data):
    rows, source, numbers = data.draw(cases(kind))
    spec = RunnableSpec("A_SPEC", (Computation("it", kind, source, numbers),), (), ())
    found = listed(computed(spec, bars_of(rows))["it"])
    wanted = plain(kind, rows, [row[PRICE.index(source)] for row in rows], numbers)
    assert_close(found, wanted, kind)


def assert_close(found, wanted, kind):
    assert [one is None for one in found] == [one is None for one in wanted], kind
    size = max((abs(one) for one in wanted if one is not None), default=0.0)
    for mine, theirs in zip(found, wanted, strict=True):
        if mine is not None:
            assert math.isclose(mine, theirs, rel_tol=1e-8, abs_tol=1e-8 * max(size, 1e-3)), (kind, mine, theirs)


@pytest.mark.parametrize("kind", sorted(FIGURES))
def test_figures_of_other_figures_begin_later_and_end_alike(kind):
    rows: list[Bar] = [(100 + i % 7, 103 + i % 11, 97 + i % 5, 100 + i % 9, 1.0 + i % 4) for i in range(90)]
    numbers = {name: NUMBERS.get(name, 3) for name in (one.split("=")[0] for one in INDICATOR_TYPES[kind].split())}
    steps = (Computation("rsi", "RSI", "close", {"period": 4}), Computation("it", kind, "rsi", numbers))
    found = computed(RunnableSpec("A_SPEC", steps, (), ()), bars_of(rows))
    assert_close(listed(found["it"]), plain(kind, rows, listed(found["rsi"]), numbers), kind)


@pytest.mark.parametrize("kind", sorted(FIGURES))
@given(data=st.data())
@settings(max_examples=15)
def test_what_is_still_to_come_changes_no_bit_of_a_figure(kind, data):
    rows, source, numbers = data.draw(cases(kind))
    cut = data.draw(st.integers(0, len(rows)))
    spec = RunnableSpec("A_SPEC", (Computation("it", kind, source, numbers),), (), ())
    whole, early = (computed(spec, bars_of(part))["it"] for part in (rows, rows[:cut]))
    assert np.array_equal(whole[:cut], early, equal_nan=True)


@pytest.mark.parametrize("kind", ["PLUS_DI", "MINUS_DI", "ADX"])
def test_where_bars_reach_and_go_nowhere_there_is_no_direction(kind):
    spec = RunnableSpec("A_SPEC", (Computation("it", kind, "close", {"period": 3}),), (), ())
    found = listed(computed(spec, bars_of([(10.0, 11.0, 9.0, 10.0, 1.0)] * 12))["it"])
    first = 5 if kind == "ADX" else 3
    assert found == [None] * first + [0.0] * (12 - first)
