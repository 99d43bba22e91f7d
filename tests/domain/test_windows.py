"""Each window against a sum of its own, whatever its length and whatever has been before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.domain import windows

VALUES = st.lists(st.sampled_from([0.0, 1.0, -2.5, 0.1, 7e9, 1e-9]), min_size=1, max_size=60)


@st.composite
def windowed(draw):
    values = draw(VALUES)
    period = draw(st.integers(1, len(values)))
    return np.array(values), period, [values[end - period : end] for end in range(period, len(values) + 1)]


@given(windowed())
@settings(max_examples=200)
def test_sums_and_extremes_are_those_of_the_window(case):
    values, period, each = case
    assert windows.sums(values, period).tolist() == pytest.approx([math.fsum(one) for one in each], rel=1e-12, abs=1e-5)
    assert windows.greatest(values, period).tolist() == [max(one) for one in each]
    assert windows.least(values, period).tolist() == [min(one) for one in each]


@given(windowed())
@settings(max_examples=200)
def test_the_reference_is_in_its_window_and_places_are_counted_from_it(case):
    values, period, each = case
    terms = (lambda step, _: step, lambda step, place: step * place)
    reference, (total, weighted) = windows.sums_from_within(values, period, *terms)
    for own, found, by_place, one in zip(reference.tolist(), total, weighted, each, strict=True):
        assert own in one
        assert found == pytest.approx(math.fsum(value - own for value in one), rel=1e-9, abs=1e-5)
        sums = [
            math.fsum((value - own) * (place - at) for place, value in enumerate(one))
            for at, value in enumerate(one)
            if value == own
        ]
        assert any(by_place == pytest.approx(wanted, rel=1e-9, abs=1e-3) for wanted in sums)


@given(windowed(), VALUES)
@settings(max_examples=100)
def test_what_is_still_to_come_changes_no_bit(case, more):
    values, period, each = case
    longer = np.concatenate((values, more))
    for figure in (windows.sums, windows.greatest, windows.least):
        assert figure(longer, period)[: len(each)].tolist() == figure(values, period).tolist()


def test_one_bad_print_leaves_with_its_window():
    values = np.concatenate(([1e300, np.inf], np.full(100, 0.1)))
    assert windows.sums(values, 30)[-1] == pytest.approx(3)
    reference, (total,) = windows.sums_from_within(values, 30, lambda step, _: step)
    assert (reference[-1], total[-1]) == (0.1, 0)
