"""A metric on a scale of 0 to 1."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.performance import Stretch, Tally, by_month, score, tally

Metric = Literal["sharpe", "accuracy", "return"]
METRICS: list[Metric] = ["sharpe", "accuracy", "return"]
FIGURES = st.floats(allow_nan=False)


@pytest.mark.parametrize(
    "metric, figure, scored",
    [
        ("sharpe", 2.0, 1.0),
        ("sharpe", 0.5, 0.5),
        ("sharpe", -1.0, 0.0),
        ("sharpe", -7.0, 0.0),
        ("sharpe", 9.0, 1.0),
        ("return", 0.0, 1 / 3),
        ("return", 0.5, 0.5),
        ("accuracy", 0.62, 0.62),
        ("accuracy", 0.0, 0.0),
        ("accuracy", 1.0, 1.0),
    ],
)
def test_each_metric_has_its_scale(metric, figure, scored):
    assert score(metric, figure) == pytest.approx(scored)


@pytest.mark.parametrize("metric", METRICS)
def test_what_was_not_measured_has_no_score_and_zero_has_one(metric):
    assert score(metric, None) is None
    assert score(metric, 0.0) is not None


@given(metric=st.sampled_from(METRICS), figure=FIGURES)
def test_a_score_is_a_fraction(metric, figure):
    scored = score(metric, figure)
    assert scored is not None
    assert 0 <= scored <= 1


@given(metric=st.sampled_from(METRICS), one=FIGURES, other=FIGURES)
def test_a_better_figure_never_scores_worse(metric, one, other):
    low, high = sorted((one, other))
    assert (score(metric, low) or 0) <= (score(metric, high) or 0)


def stretch(month: int, trades: int, winning: int, earned: float | None, sharpe: float | None) -> Stretch:
    return Stretch(datetime(2026, month, 15, tzinfo=UTC), trades, winning, earned, sharpe)


def test_stretches_add_up_by_their_trades():
    found = tally([stretch(1, 3, 2, 0.06, 2.0), stretch(1, 1, 0, -0.02, -2.0), stretch(1, 0, 0, 0.0, 50.0)])
    assert (found.trades, found.accuracy, found.sharpe) == (4, 0.5, 1.0)
    assert found.earned == pytest.approx(0.04)
    assert found.average == pytest.approx(0.01)


def test_what_was_not_measured_counts_nowhere():
    assert tally([]) == Tally(0, None, None, None, None)
    assert tally([stretch(1, 0, 0, 0.0, None)]) == Tally(0, None, 0.0, None, None)
    found = tally([stretch(1, 2, 1, None, None), stretch(1, 1, 1, 0.03, 1.5)])
    assert (found.trades, found.average, found.sharpe) == (3, 0.03, 1.5)
    assert found.accuracy == pytest.approx(2 / 3)


def test_months_ascend_and_are_those_in_which_a_stretch_ended_in_utc():
    late = Stretch(datetime(2026, 2, 1, 2, 0, tzinfo=timezone(timedelta(hours=2))), 1, 1, 0.01, None)
    found = by_month([stretch(3, 1, 0, 0.0, None), late, stretch(1, 2, 1, 0.0, None)])
    assert [(month, one.trades) for month, one in found] == [("2026-01", 3), ("2026-03", 1)]
