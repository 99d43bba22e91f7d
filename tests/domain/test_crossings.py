"""The chart spec's figures and rules, against a second implementation in plain Python that shares nothing with it."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quantdeck.domain.crossings import BARS_NEEDED, RULES, Figures, crossings, reading

SPEC = json.loads(Path("docs/spec/chart_signals.json").read_text())
LEVEL = Figures(*[50.0] * len(fields(Figures)))

# The second implementation: the formulas of the rulings, bar by bar.


def averaged(values: list[float], period: int, weight: float) -> list[float]:
    """Seeded with a simple mean, and shorter by what comes before it."""
    found = [math.fsum(values[:period]) / period]
    for value in values[period:]:
        found.append(found[-1] + weight * (value - found[-1]))
    return found


def plain(closes: list[float]) -> dict[str, float]:
    """The figures at the last of at least 34 closes."""
    fast, slow = averaged(closes, 12, 2 / 13), averaged(closes, 26, 2 / 27)
    line = [a - b for a, b in zip(fast[14:], slow, strict=True)]
    moves = [after - before for before, after in pairwise(closes)]
    gain = averaged([max(move, 0) for move in moves], 14, 1 / 14)[-1]
    loss = averaged([max(-move, 0) for move in moves], 14, 1 / 14)[-1]
    window = closes[-20:]
    middle = math.fsum(window) / 20
    reach = 2 * math.sqrt(math.fsum((close - middle) ** 2 for close in window) / 20)
    signal = averaged(line, 9, 2 / 10)[-1]
    return {
        "close": closes[-1], "ema9": averaged(closes, 9, 2 / 10)[-1], "ma10": math.fsum(closes[-10:]) / 10,
        "macd": line[-1], "signal": signal, "hist": line[-1] - signal, "rsi": 100 * gain / (gain + loss),
        "bb_upper": middle + reach, "bb_middle": middle, "bb_lower": middle - reach,
    }  # fmt: skip


def ruled(prev: Any, last: Any) -> dict[str, bool]:
    """The rules as the spec writes them, word for word."""
    return {
        "macd_cross_up": prev["macd"] <= prev["signal"] and last["macd"] > last["signal"],
        "macd_cross_dn": prev["macd"] >= prev["signal"] and last["macd"] < last["signal"],
        "ema_support_lost": prev["close"] >= prev["ema9"] and last["close"] < last["ema9"],
        "ema_reclaim": prev["close"] <= prev["ema9"] and last["close"] > last["ema9"],
        "rsi_overbought": last["rsi"] >= 70,
        "rsi_oversold": last["rsi"] <= 30,
        "bb_squeeze": (last["bb_upper"] - last["bb_lower"]) / last["bb_middle"] < 0.04,
        "bb_breakout_up": last["close"] > last["bb_upper"],
        "bb_breakout_dn": last["close"] < last["bb_lower"],
    }


def walk(seed: int, many: int, size: float = 100, step: float = 1e-3) -> list[float]:
    found: list[float] = (size * np.exp(np.cumsum(np.random.default_rng(seed).normal(0, step, many)))).tolist()
    return found


@pytest.mark.parametrize("many", [BARS_NEEDED, 36, 60, 500])
@pytest.mark.parametrize("size", [1e-5, 3.6, 98_234.5])
def test_figures_are_those_of_the_second_implementation(many, size):
    for seed in range(5):
        closes = walk(seed, many, size, 2e-3)
        found = reading(np.array(closes))
        assert found.price == closes[-1]
        for name, expected in plain(closes).items():
            assert getattr(found.last, name) == pytest.approx(expected, rel=1e-9, abs=1e-11 * size), name


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), many=st.integers(BARS_NEEDED, 120), step=st.sampled_from([1e-3, 5e-3, 3e-2]))
def test_crossings_are_those_of_the_rules_as_they_are_written(seed, many, step):
    closes = walk(seed, many, step=step)
    assert reading(np.array(closes)).crossings == ruled(plain(closes[:-1]), plain(closes))


def test_every_rule_is_met_by_some_series_and_missed_by_others():
    met = [reading(np.array(walk(seed, 60, step=3e-3))).crossings for seed in range(150)]
    calm = [reading(np.array(walk(seed, 60, step=3e-2))).crossings for seed in range(50)]
    for name in RULES:
        assert {found[name] for found in (*met, *calm)} == {True, False}, name


def test_the_rules_are_the_specs():
    ready = next(tool for tool in SPEC["tools"] if tool["name"] == "get_signals")["result_schema"]["oneOf"][0]
    assert list(RULES) == list(ready["properties"]["crossings"]["properties"])
    assert RULES.keys() == SPEC["crossing_rules"].keys()


# Both edges of each rule, at figures as they come: below, exactly on, and above by the least there is.

BELOW, ABOVE = math.nextafter(50, 0), math.nextafter(50, 100)
NEAR = st.sampled_from([BELOW, 50.0, ABOVE, 20.0, 80.0])


@given(
    macd=NEAR,
    signal=NEAR,
    macd_before=NEAR,
    signal_before=NEAR,
    close=NEAR,
    ema=NEAR,
    close_before=NEAR,
    ema_before=NEAR,
)
@settings(max_examples=300, deadline=None)
def test_a_cross_is_from_one_side_or_level_to_strictly_the_other(
    macd, signal, macd_before, signal_before, close, ema, close_before, ema_before
):
    prev = replace(LEVEL, macd=macd_before, signal=signal_before, close=close_before, ema9=ema_before)
    last = replace(LEVEL, macd=macd, signal=signal, close=close, ema9=ema)
    found = crossings(prev, last)
    assert found["macd_cross_up"] == (macd_before <= signal_before and macd > signal)
    assert found["macd_cross_dn"] == (macd_before >= signal_before and macd < signal)
    assert found["ema_reclaim"] == (close_before <= ema_before and close > ema)
    assert found["ema_support_lost"] == (close_before >= ema_before and close < ema)


@given(rsi=st.floats(0, 100), close=NEAR, upper=NEAR, lower=NEAR)
@example(rsi=70.0, close=50.0, upper=50.0, lower=50.0)
@example(rsi=math.nextafter(70, 0), close=ABOVE, upper=50.0, lower=50.0)
@example(rsi=30.0, close=BELOW, upper=50.0, lower=50.0)
@example(rsi=math.nextafter(30, 100), close=50.0, upper=BELOW, lower=ABOVE)
@settings(max_examples=200, deadline=None)
def test_levels_of_the_rsi_belong_to_it_and_bands_must_be_left(rsi, close, upper, lower):
    found = crossings(LEVEL, replace(LEVEL, rsi=rsi, close=close, bb_upper=upper, bb_lower=lower))
    assert (found["rsi_overbought"], found["rsi_oversold"]) == (rsi >= 70, rsi <= 30)
    assert (found["bb_breakout_up"], found["bb_breakout_dn"]) == (close > upper, close < lower)


@pytest.mark.parametrize("upper, lower, squeezed", [
    (102, 98, False), (101.9999999, 98, True), (102.0000001, 98, False), (100, 100, True), (1.02, 0.98, None),
])  # fmt: skip
def test_a_squeeze_is_narrower_than_four_hundredths_of_the_middle(upper, lower, squeezed):
    middle = (upper + lower) / 2
    found = crossings(LEVEL, replace(LEVEL, bb_upper=upper, bb_middle=middle, bb_lower=lower))
    assert found["bb_squeeze"] is bool(squeezed), "1.02 - 0.98 is 0.04 on paper, and less in floats"


def test_what_does_not_exist_fulfils_no_rule():
    for name in (field.name for field in fields(Figures)):
        missing = replace(LEVEL, **{name: None})
        assert crossings(missing, missing)[{"macd": "macd_cross_up"}.get(name, "ema_reclaim")] is False
    assert not any(crossings(Figures(*[None] * 10), Figures(*[None] * 10)).values())
    assert crossings(LEVEL, replace(LEVEL, bb_middle=0.0))["bb_squeeze"] is False


# What is equal on paper is equal here.


@pytest.mark.parametrize("price", [5.0, 0.1 + 0.2, 1e-7, 98_234.51, 1e12])
def test_a_market_that_stands_still_crosses_nothing(price):
    found = reading(np.full(80, price))
    assert found.signals == ["bb_squeeze"]
    assert found.last.rsi is None
    assert (found.last.macd, found.last.signal, found.last.hist) == (0, 0, 0)


@settings(max_examples=60, deadline=None)
@given(start=st.floats(50, 500), step=st.sampled_from([0.01, 0.1, -0.07, 0.3]), many=st.integers(60, 200))
def test_a_straight_line_has_a_level_macd_that_crosses_nothing(start, step, many):
    found = reading(start + step * np.arange(many))
    assert {"macd_cross_up", "macd_cross_dn"}.isdisjoint(found.signals)


@pytest.mark.parametrize("still", range(21, 40))
def test_a_share_of_seven_tenths_is_seventy_whatever_came_after_stood_still(still):
    up = np.cumsum([100.0, *[0.1] * 7, *[-0.1] * 3, *[0.0] * 4, *[0.0] * still])
    down = np.cumsum([100.0, *[-0.1] * 7, *[0.1] * 3, *[0.0] * 4, *[0.0] * still])
    assert (reading(up).last.rsi, reading(up).crossings["rsi_overbought"]) == (70, True)
    assert (reading(down).last.rsi, reading(down).crossings["rsi_oversold"]) == (30, True)


def test_only_gains_are_a_hundred_and_only_losses_nothing():
    assert reading(np.arange(100.0, 160)).last.rsi == 100
    assert reading(np.arange(160.0, 100, -1)).last.rsi == 0


def test_the_signal_line_needs_thirty_four_bars_and_a_crossing_one_more():
    assert reading(np.array(walk(1, 33))).last.signal is None
    assert reading(np.array(walk(1, 34))).last.signal is not None
    crossed = [reading(np.array(walk(seed, 34))).crossings for seed in range(200)]
    assert not any(found["macd_cross_up"] for found in crossed)
    assert not any(found["macd_cross_dn"] for found in crossed)
    crossed = [reading(np.array(walk(seed, 35))).crossings for seed in range(200)]
    assert any(found["macd_cross_up"] for found in crossed)


def test_how_far_back_is_read_leaves_no_trace():
    closes = np.array(walk(3, 3000))
    assert reading(closes[-500:]).crossings == reading(closes).crossings
    ours, whole = reading(closes[-500:]).last, reading(closes).last
    for field in fields(Figures):
        assert getattr(ours, field.name) == pytest.approx(getattr(whole, field.name), rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_an_rsi_of_seven_tenths_is_overbought_whatever_the_price(unit):
    """Its digits are its own: those of a price of a millionth would show it as 69.99999999999999."""
    steps = [1, -1, 1, 0, 1, -1, 1, 0, 1, -1, 1, 0, 1, 0]
    found = reading(unit * np.cumsum([100, *steps]))
    assert (found.last.rsi, found.crossings["rsi_overbought"]) == (70.0, True)
