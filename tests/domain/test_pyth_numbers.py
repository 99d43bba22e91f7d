"""Pyth's integers, times and channels."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.pyth_numbers import CHANNELS, basis_points, display, exact, is_faster, iso_of_us, microseconds


@pytest.mark.parametrize(
    "mantissa, exponent, shown",
    [
        ("8063953748222", -8, "80639.53748222"),
        (80813667608700001, -12, "80813.667608700001"),  # beyond what a float holds
        (1006900000000, -8, "10069.00000000"),
        (12140000, -12, "0.000012140000"),
        (-5, -2, "-0.05"),
        (0, -8, "0.00000000"),
        (7, 0, "7"),
        (7, 3, "7000"),
        (None, -8, None),
        (1, None, None),
        ("1.5", -8, None),
        ("", -8, None),
        (True, -8, None),
        (1, 10**9, None),
        ("9" * 1000, -8, None),
    ],
)
def test_a_mantissa_is_shown_with_every_digit(mantissa, exponent, shown):
    assert display(mantissa, exponent) == shown


@given(st.integers(-(10**30), 10**30), st.integers(-30, 30))
def test_what_is_shown_is_exactly_what_is_meant(mantissa, exponent):
    shown = display(mantissa, exponent)
    assert shown is not None
    assert "e" not in shown.lower()
    assert Fraction(shown) == mantissa * Fraction(10) ** exponent
    assert display(str(mantissa), exponent) == shown


@pytest.mark.parametrize("part, whole, bps", [(5, 1000, 50.0), ("1783407191", "8063953748222", 2.21), (1, 0, None),
                                              (None, 5, None), (5, None, None), (5, -1000, 50.0),
                                              ("9" * 60, "1", 1e64)])  # fmt: skip
def test_a_part_is_told_in_basis_points(part, whole, bps):
    assert basis_points(part, whole) == bps


@pytest.mark.parametrize(
    "timestamp, us",
    [
        (1743465600, 1743465600_000000),
        (1743465600.5, 1743465600_500000),
        (1743465600123, 1743465600123_000),
        (1743465600123456, 1743465600123456),
        (10**9, 10**15),
        (10**10, 10**13),  # eleven digits are milliseconds
        (1, 10**6),
    ],
)
def test_a_time_is_told_by_its_size(timestamp, us):
    assert microseconds(timestamp) == us


@pytest.mark.parametrize("timestamp", [0, -1, 1743465600123456789, 1e300])
def test_what_can_be_no_time_is_refused(timestamp):
    with pytest.raises(ValueError, match="timestamp"):
        microseconds(timestamp)


def test_faster_is_what_comes_earlier():
    faster = [(a, b) for a, b in product(CHANNELS, CHANNELS) if is_faster(a, b)]
    assert len(faster) == 6
    assert ("real_time", "fixed_rate@50ms") in faster
    assert is_faster("fixed_rate@1ms", "fixed_rate@50ms")  # one that nobody knew, by its name
    assert not is_faster("real_time", "fixed_rate@fast")


def test_a_time_in_words():
    assert iso_of_us(1743465600_000000) == "2025-04-01T00:00:00Z"
    assert iso_of_us(1778594100_200000) == "2026-05-12T13:55:00.200000Z"


def test_only_digits_are_an_integer():
    assert [exact(value) for value in (1, "1", "-1", "1e3", "٣", True, 1.0, None)] == [1, 1, -1, *[None] * 5]
