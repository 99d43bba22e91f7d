"""Instants of event logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.domain.event_times import instant, micros, text

EARLIEST, LATEST = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001 - hypothesis adds the zone


@given(st.datetimes(EARLIEST, LATEST) | st.datetimes(EARLIEST, LATEST, timezones=st.timezones()))
def test_what_is_told_is_what_was_meant(at):
    meant = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    assert instant(text(micros(at))) == meant
    assert micros(instant(at.isoformat())) == micros(at)


@given(st.integers(-(10**15), 10**16), st.integers(-(10**15), 10**16))
def test_texts_of_one_precision_sort_as_their_times_do(one, other):
    one, other = one // 1000 * 1000, other // 1000 * 1000
    assert (text(one) < text(other)) == (one < other) or min(one, other) < -62_135_596_800_000_000


@pytest.mark.parametrize(
    "told, meant",
    [
        ("2025-06-15T14:30:45.123Z", datetime(2025, 6, 15, 14, 30, 45, 123_000, UTC)),
        ("2025-06-15t14:30:45z", datetime(2025, 6, 15, 14, 30, 45, tzinfo=UTC)),
        ("2025-06-15 14:30", datetime(2025, 6, 15, 14, 30, tzinfo=UTC)),
        ("2025-06-15T14:30:45.1234567Z", datetime(2025, 6, 15, 14, 30, 45, 123_456, UTC)),
        ("2025-06-15T14:30:45+02:00", datetime(2025, 6, 15, 14, 30, 45, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_an_offset_that_is_not_told_is_utc(told, meant):
    assert instant(told) == meant


@pytest.mark.parametrize(
    "told", ["", "2025-06-15", "20250615", "2025-W24-7", "now", "14:30", "1735689600", "2025-06-15T25:00"]
)
def test_what_is_no_time_is_refused(told):
    with pytest.raises(ValueError, match="must be a time"):
        instant(told)


@pytest.mark.parametrize(
    "at, told",
    [(0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.000001Z"), (-1000, "1969-12-31T23:59:59.999Z")],
)
def test_milliseconds_are_always_told_and_microseconds_where_there_are_any(at, told):
    assert text(at) == told
