"""A metric on a scale of 0 to 1."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.performance import score

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
