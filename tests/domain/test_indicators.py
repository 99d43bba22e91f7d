"""Each indicator against a plain second implementation, on series as they come and as they should not come."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.domain import indicators
from quantdeck.domain.arrays import last, listed
from tests.domain import reference

SIZES = st.sampled_from([1e-12, 1.0, 60_000.0, 1e300])
NOTHING = (math.nan, math.inf, -math.inf)


@st.composite
def prices(draw):
    """Runs of equal values, so that there are flat stretches; all of one size, or of any."""
    runs = draw(st.lists(st.tuples(st.floats(0.5, 2), st.integers(1, 8)), max_size=40))
    sizes = draw(st.one_of(SIZES.map(lambda one: [one]), st.lists(SIZES, min_size=2, max_size=5)))
    values = [value * sizes[index % len(sizes)] for index, (value, count) in enumerate(runs) for _ in range(count)]
    return values[:90]


@st.composite
def bars(draw):
    close = draw(prices())
    reach = draw(st.lists(st.floats(0, 0.5), min_size=len(close), max_size=len(close)))
    volume = draw(st.lists(st.sampled_from([0.0, 0.5, 7.0, 1e12]), min_size=len(close), max_size=len(close)))
    high = [value * (1 + part) for value, part in zip(close, reach, strict=True)]
    low = [value * (1 - part) for value, part in zip(close, reversed(reach), strict=True)]
    return high, low, close, volume


def with_holes(*series: list[float], data) -> tuple[list[list[float]], list[bool]]:
    """The series with bars put in of which one value is nothing, and which bars were there before."""
    holes = data.draw(st.lists(st.tuples(st.integers(0, len(series[0])), st.sampled_from(NOTHING)), max_size=5))
    found, kept = [list(one) for one in series], [True] * len(series[0])
    for place, nothing in holes:
        column = data.draw(st.integers(0, len(series) - 1))
        for index, one in enumerate(found):
            one.insert(place, nothing if index == column else 1.0)
        kept.insert(place, False)
    return found, kept


def assert_same(found: np.ndarray, expected: list[float | None], kept: list[bool], scale: float = 0.0) -> None:
    """To a billionth; of `scale` where the figure is a difference of numbers of that size."""
    figures = listed(found)
    assert [figure for figure, there in zip(figures, kept, strict=True) if not there] == [None] * kept.count(False)
    figures = [figure for figure, there in zip(figures, kept, strict=True) if there]
    assert_close(figures, expected, rel=1e-9, scale=scale)


def assert_close(found: list[float | None], expected: list[float | None], *, rel: float, scale: float = 0.0) -> None:
    assert [figure is None for figure in found] == [figure is None for figure in expected]
    pairs = [(a, b) for a, b in zip(found, expected, strict=True) if a is not None and b is not None]
    assert [a for a, _ in pairs] == pytest.approx([b for _, b in pairs], rel=rel, abs=rel * scale)


FIGURES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sma": (indicators.sma, reference.sma),
    "ema": (indicators.ema, reference.ema),
    "wilder": (indicators.wilder, reference.wilder),
    "deviation": (indicators.deviation, reference.deviation),
    "deviation of a sample": (
        lambda values, period: indicators.deviation(values, period, sample=True),
        lambda values, period: reference.deviation(values, period, sample=True),
    ),
    "rsi": (indicators.rsi, reference.rsi),
}


@pytest.mark.parametrize("name", FIGURES)
@given(values=prices(), period=st.integers(1, 60), data=st.data())
@settings(max_examples=40)
def test_a_figure_is_that_of_the_plain_loop(name, values, period, data):
    ours, theirs = FIGURES[name]
    (holed,), kept = with_holes(values, data=data)
    points = 1.0 if name == "rsi" else 0.0  # the classic formula, 100 - 100 / (1 + RS), is a difference itself
    assert_same(ours(np.array(holed), period), theirs(values, period), kept, scale=points)


@given(values=prices(), fast=st.integers(1, 12), more=st.integers(0, 14), signal=st.integers(1, 9), data=st.data())
@settings(max_examples=60)
def test_macd_is_that_of_the_plain_loop(values, fast, more, signal, data):
    (holed,), kept = with_holes(values, data=data)
    found = indicators.macd(np.array(holed), fast, fast + more, signal)
    for ours, theirs in zip(found, reference.macd(values, fast, fast + more, signal), strict=True):
        assert_same(ours, theirs, kept, scale=1e-3 * max(values, default=0))


@given(values=prices(), period=st.integers(1, 60), width=st.floats(0.5, 4), data=st.data())
@settings(max_examples=60)
def test_bollinger_is_that_of_the_plain_loop(values, period, width, data):
    (holed,), kept = with_holes(values, data=data)
    found = indicators.bollinger(np.array(holed), period, width)
    for ours, theirs in zip(found, reference.bollinger(values, period, width), strict=True):
        assert_same(ours, theirs, kept, scale=1e-3 * max(values, default=0))


@given(ohlc=bars(), period=st.integers(1, 20), data=st.data())
@settings(max_examples=60)
def test_ranges_and_vwap_are_those_of_the_plain_loop(ohlc, period, data):
    (high, low, close, volume), kept = with_holes(*ohlc, data=data)
    whole = [all(map(math.isfinite, bar)) for bar in zip(high, low, close, strict=True)]
    high_low_close = (high, low, close)
    highs, lows, closes = ([value for value, there in zip(one, whole, strict=True) if there] for one in high_low_close)
    assert_same(indicators.true_range(high, low, close), reference.true_range(highs, lows, closes), whole)
    assert_same(indicators.atr(high, low, close, period), reference.atr(highs, lows, closes, period), whole)
    assert_same(indicators.vwap(high, low, close, volume), reference.vwap(*ohlc), kept)


EVERY: dict[str, Callable[..., Any]] = {
    "sma": lambda v: indicators.sma(v, 20),
    "ema": lambda v: indicators.ema(v, 9),
    "wilder": lambda v: indicators.wilder(v, 14),
    "deviation": lambda v: indicators.deviation(v, 20),
    "rsi": indicators.rsi,
    "macd line": lambda v: indicators.macd(v).line,
    "macd signal": lambda v: indicators.macd(v).signal,
    "macd histogram": lambda v: indicators.macd(v).histogram,
    "upper band": lambda v: indicators.bollinger(v).upper,
    "middle band": lambda v: indicators.bollinger(v).middle,
    "lower band": lambda v: indicators.bollinger(v).lower,
    "true range": lambda v: indicators.true_range(v, v, v),
    "atr": lambda v: indicators.atr(v, v, v),
    "typical price": lambda v: indicators.typical_price(v, v, v),
    "vwap": lambda v: indicators.vwap(v, v, v, v),
}
FIRST = {
    "sma": 19, "ema": 8, "wilder": 13, "deviation": 19, "rsi": 14, "macd line": 25, "macd signal": 33,
    "macd histogram": 33, "upper band": 19, "middle band": 19, "lower band": 19, "true range": 1, "atr": 14,
    "typical price": 0, "vwap": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_the_first_figure_stands_where_it_is_complete_and_none_before(name):
    values = 100 + np.random.default_rng(1).normal(size=60).cumsum()
    for bars in range(60):
        figures = listed(EVERY[name](values[:bars]))
        assert figures[: FIRST[name]] == [None] * min(bars, FIRST[name])
        assert None not in figures[FIRST[name] :]
        assert len(figures) == bars


@pytest.mark.parametrize("name", EVERY)
@given(values=st.lists(st.floats(), max_size=60))
@settings(max_examples=60)
def test_what_comes_out_of_anything_is_a_number_or_nothing(name, values):
    found = EVERY[name](np.array(values))
    assert len(found) == len(values)
    assert not np.isinf(found).any()
    assert last(found) is None or math.isfinite(last(found) or 0)


@pytest.mark.parametrize("name", EVERY)
@given(values=prices(), cut=st.integers(0, 90))
@settings(max_examples=30)
def test_what_is_still_to_come_changes_nothing(name, values, cut):
    whole, early = EVERY[name](np.array(values)), EVERY[name](np.array(values[:cut]))
    if name != "vwap":
        assert listed(whole[: len(early)]) == listed(early)
    else:  # its weights are scaled by the greatest, which rounds differently
        assert_close(listed(whole[: len(early)]), listed(early), rel=1e-12)


@given(value=st.floats(1e-12, 1e300), bars=st.integers(40, 60))
def test_where_nothing_moves_averages_are_the_price_itself_and_rsi_is_nothing(value, bars):
    flat = np.full(bars, value)
    for average in ("sma", "ema", "wilder", "upper band", "middle band", "lower band", "typical price", "vwap"):
        assert last(EVERY[average](flat)) == value
    for nothing in ("deviation", "macd line", "macd signal", "macd histogram", "true range", "atr"):
        assert last(EVERY[nothing](flat)) == 0
    assert listed(indicators.rsi(flat)) == [None] * bars


def test_rsi_of_gains_alone_is_a_hundred_and_of_losses_alone_nothing():
    rising = np.arange(1.0, 41.0)
    assert last(indicators.rsi(rising)) == 100
    assert last(indicators.rsi(rising[::-1])) == 0
    assert last(indicators.rsi(rising * 1e-15)) == 100


def test_rsi_remembers_a_gain_through_a_long_calm_until_nothing_of_it_is_left():
    calm = np.concatenate(([1.0] * 14, [2.0] * 20_000))
    found = indicators.rsi(calm)
    assert last(found[:5_000]) == 100
    assert last(found) is None


def test_one_bad_print_is_forgotten_with_its_window():
    values = np.concatenate(([1e300], np.ones(40)))
    assert last(indicators.sma(values, 20)) == 1
    assert last(indicators.deviation(values, 20)) == 0


def test_a_bar_that_is_no_number_is_as_if_it_were_missing():
    values = 100 + np.random.default_rng(2).normal(size=60).cumsum()
    holed = np.insert(values, 30, np.nan)
    for name, figure in EVERY.items():
        if name != "vwap":
            assert listed(np.delete(figure(holed), 30)) == listed(figure(values)), name


def test_the_macd_is_the_difference_of_two_averages_each_with_a_seed_of_its_own():
    values = np.arange(1.0, 41.0) ** 2
    assert last(indicators.macd(values).line[:26]) == pytest.approx(
        last(indicators.ema(values, 12)[:26]) - np.mean(values[:26])
    )


@pytest.mark.parametrize("period", [0, -1, 100_001])
def test_a_period_that_is_none_is_refused(period):
    with pytest.raises(ValueError, match="1 to 100000 bars"):
        indicators.sma(np.ones(5), period)


def test_the_newest_figure_or_an_earlier_one_is_a_plain_number_or_none():
    series = np.array([1.0, np.nan, 3.0])
    assert (last(series), last(series, back=1), last(series, back=2), last(series, back=3)) == (3.0, None, 1.0, None)
    assert type(last(series)) is float
