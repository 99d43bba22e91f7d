"""Bars as columns, and what is derived of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.candles import Bars, closed_before, faults, joined, resampled, settled
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES

NOON_S = 1_700_006_400 // 86_400 * 86_400 + 43_200
PRICES = st.floats(min_value=1e-8, max_value=1e9)


def rows(bars):
    """Bars as a person would write them down."""
    return list(zip(*(column.tolist() for column in bars.columns()), strict=True))


@st.composite
def minutes(draw):
    """Minute bars with gaps."""
    opens = sorted(draw(st.sets(st.integers(-5_000, 5_000), max_size=60)))
    made = []
    for minute in opens:
        four = draw(st.lists(PRICES, min_size=4, max_size=4))
        made.append((minute * 60, four[0], max(four), min(four), four[3], draw(st.floats(0, 1e6))))
    return made


def bars_of(made):
    return Bars.of(*zip(*made, strict=True)) if made else Bars.none()


def plainly(made, seconds):
    """Resampling by hand: one bar after the other."""
    buckets: dict[int, list[list[float]]] = {}
    for time, *values in made:
        buckets.setdefault(math.floor(time / seconds) * seconds, []).append(values)
    return [
        (open_s, held[0][0], max(v[1] for v in held), min(v[2] for v in held), held[-1][3], [v[4] for v in held])
        for open_s, held in sorted(buckets.items())
    ]


@given(minutes(), st.sampled_from(list(TIMEFRAMES.values())))
def test_coarser_bars_are_what_a_person_would_make_of_finer_ones(made, to):
    found = rows(resampled(bars_of(made), to))
    expected = plainly(made, to.seconds)
    assert [bar[:5] for bar in found] == [bar[:5] for bar in expected]
    assert [bar[5] for bar in found] == [pytest.approx(math.fsum(bar[5]), rel=1e-12) for bar in expected]


@given(minutes(), st.sampled_from(["5m", "15m", "1h"]))
def test_coarser_bars_can_be_made_in_steps(made, between):
    step = resampled(resampled(bars_of(made), TIMEFRAMES[between]), DAY)
    assert [bar[:5] for bar in rows(step)] == [bar[:5] for bar in rows(resampled(bars_of(made), DAY))]


def test_a_gap_stays_a_gap():
    bars = Bars.of([NOON_S, NOON_S + 7200], *([[1.0, 2.0]] * 5))
    assert resampled(bars, TIMEFRAMES["1h"]).time.tolist() == [NOON_S, NOON_S + 7200]


def test_a_bar_is_closed_from_the_moment_at_which_the_next_one_opens():
    hour = TIMEFRAMES["1h"]
    assert closed_before(NOON_S, hour) == NOON_S  # the bar of eleven, not that of noon
    assert closed_before(NOON_S - 0.001, hour) == NOON_S - 3600


@given(st.lists(st.tuples(st.integers(0, 9), PRICES), max_size=30))
def test_settled_bars_ascend_and_the_last_version_of_each_stays(given_):
    time = [minute * 60 for minute, _ in given_]
    price = [price for _, price in given_]
    found = settled(Bars.of(time, price, price, price, price, price))
    assert dict(zip(found.time.tolist(), found.close.tolist(), strict=True)) == dict(zip(time, price, strict=True))
    assert found.time.tolist() == sorted(set(time))


@pytest.mark.parametrize(
    "bar, fault",
    [
        ((60, 1, math.nan, 1, 1, 1), "not a finite number"),
        ((60, 1, 1, 1, 1, math.inf), "not a finite number"),
        ((60, 2, 1, 1, 1, 1), "high is below another price"),
        ((60, 2, 3, 2.5, 3, 1), "low is above another price"),
        ((60, 1, 1, 1, 1, -1), "negative volume"),
        ((61, 1, 1, 1, 1, 1), "opens between two bars of 1m"),
    ],
)
def test_a_bar_that_cannot_be_is_named(bar, fault):
    sound = (0, 1, 1, 1, 1, 0)
    found = faults(bars_of([sound, bar]), MINUTE)
    assert fault in found
    assert found[fault].tolist() == [False, True]
    assert faults(bars_of([sound]), MINUTE) == {}


def test_prices_may_be_negative():
    assert faults(Bars.of([0], [-37.6], [-30.0], [-40.3], [-37.6], [1.0]), MINUTE) == {}


def test_parts_join_to_a_whole_and_nothing_joins_to_nothing():
    one, two = Bars.of([0], *([[1.0]] * 5)), Bars.of([60, 120], *([[2.0, 3.0]] * 5))
    whole = joined([one, Bars.none(), two])
    assert whole.time.tolist() == [0, 60, 120]
    assert len(joined([])) == 0
    assert whole.between(60, 120).time.tolist() == [60]
    assert whole[1:].close.dtype == np.float64
