"""How much a price moves, against a plain second implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.domain.arrays import last, listed
from quantdeck.domain.volatility import BARS_NEEDED, BARS_USED, realised, returns, volatility
from tests.domain import reference

PRICES = st.one_of(st.floats(50, 200), st.sampled_from([0.0, -1.0, 100.0, 1e-12, 1e300]))
BARS = st.lists(st.tuples(PRICES, st.floats(0, 0.5), st.floats(0, 0.5)), max_size=60)


def columns(bars) -> tuple[list[float], list[float], list[float]]:
    high = [close + abs(close) * up for close, up, _ in bars]
    low = [close - abs(close) * down for close, _, down in bars]
    return high, low, [close for close, _, _ in bars]


@given(bars=BARS)
@settings(max_examples=150)
def test_the_three_figures_are_those_of_the_plain_loop(bars):
    high, low, close = columns(bars)
    found = volatility(high, low, close)
    for ours, theirs in zip(
        (found.volatility, found.atr, found.high_low_range), reference.volatility(high, low, close), strict=True
    ):
        assert (ours is None) == (theirs is None)
        assert ours is None or ours == pytest.approx(theirs, rel=1e-9)


@given(bars=BARS, period=st.integers(1, 25))
@settings(max_examples=60)
def test_realised_volatility_is_that_of_the_plain_loop(bars, period):
    close = columns(bars)[2]
    assert listed(returns(close)) == reference.returns(close)
    sound = [value for value in reference.returns(close) if value is not None]
    expected = reference.deviation(sound, period, sample=True)[-1:] or [None]
    if reference.returns(close)[-1:] not in ([], [None]):
        assert last(realised(close, period)) == (None if expected == [None] else pytest.approx(expected[0], rel=1e-9))


def test_only_the_newest_bars_count():
    rng = np.random.default_rng(3)
    close = 100 * np.exp(rng.normal(0, 0.01, 200).cumsum())
    high, low = close * 1.01, close * 0.99
    newest = slice(-BARS_USED, None)
    assert volatility(high, low, close) == volatility(high[newest], low[newest], close[newest])
    assert volatility(high, low, close) != volatility(high[-BARS_USED + 1 :], low[-BARS_USED + 1 :], close[-24:])


def test_small_cases_by_hand():
    found = volatility([11, 12, 13], [9, 10, 8], [10, 11, 9.9])
    assert found.volatility == pytest.approx(math.sqrt(0.02))  # returns of 0.1 and -0.1
    assert found.atr == pytest.approx((2 + 5) / 2)
    assert found.high_low_range == 5


@pytest.mark.parametrize("bars", [0, 1, 2])
def test_what_too_few_bars_cannot_say_is_none(bars):
    found = volatility([11.0] * bars, [9.0] * bars, [10.0] * bars)
    assert found.volatility is None
    assert (found.atr, found.high_low_range) == ((None, None), (None, 2), (2, 2))[bars]


def test_a_flat_market_does_not_move():
    flat = [0.1] * BARS_NEEDED
    found = volatility(flat, flat, flat)
    assert (found.volatility, found.atr, found.high_low_range) == (0, 0, 0)
    assert last(realised([0.1] * 30)) == 0


def test_a_pair_with_a_price_of_nothing_is_skipped():
    close = [100.0, 101.0, 0.0, 99.0, 100.0]
    high, low = [price + 1 for price in close], [price - 1 for price in close]
    found = volatility(high, low, close)
    assert found.volatility == pytest.approx(abs(0.01 - 1 / 99) / math.sqrt(2))
    assert found.atr == pytest.approx(2)
    assert listed(returns(close)) == [None, pytest.approx(0.01), None, None, pytest.approx(1 / 99)]


def test_a_bar_that_is_no_number_is_as_if_it_were_missing():
    assert volatility([11, 5, 12], [9, math.nan, 10], [10, 5, 11]) == volatility([11, 12], [9, 10], [10, 11])
    assert volatility([math.inf], [1], [1]) == volatility([], [], [])


@given(values=st.lists(st.tuples(st.floats(), st.floats(), st.floats()), max_size=40))
def test_what_comes_out_of_anything_is_a_number_or_none(values):
    found = volatility(*([bar[column] for bar in values] for column in range(3)))
    for figure in (found.volatility, found.atr, found.high_low_range):
        assert figure is None or math.isfinite(figure)
