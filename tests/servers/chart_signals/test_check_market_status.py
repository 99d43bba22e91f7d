"""check_market_status, through a client: sessions and openings of New York's exchange, whatever the season."""

from __future__ import annotations

import pytest

from tests.support.bars import at


@pytest.fixture
def era() -> str:
    """One will do: nothing here depends on it."""
    return "auto"


# The instant in UTC; session, next opening in words and as a time, New York's clock.
STATUSES = [
    ("2026-01-15T14:29:59", "premarket", "Today 9:30 AM ET", "2026-01-15T14:30:00+00:00", "9:29 AM ET"),
    ("2026-01-15T14:30:00", "regular", "Tomorrow 9:30 AM ET", "2026-01-16T14:30:00+00:00", "9:30 AM ET"),
    ("2026-01-15T20:59:59", "regular", "Tomorrow 9:30 AM ET", "2026-01-16T14:30:00+00:00", "3:59 PM ET"),
    ("2026-01-15T21:00:00", "afterhours", "Tomorrow 9:30 AM ET", "2026-01-16T14:30:00+00:00", "4:00 PM ET"),
    ("2026-01-16T00:59:59", "afterhours", "Tomorrow 9:30 AM ET", "2026-01-16T14:30:00+00:00", "7:59 PM ET"),
    ("2026-01-16T01:00:00", "closed", "Tomorrow 9:30 AM ET", "2026-01-16T14:30:00+00:00", "8:00 PM ET"),
    ("2026-01-16T05:00:00", "closed", "Today 9:30 AM ET", "2026-01-16T14:30:00+00:00", "12:00 AM ET"),
    ("2026-01-16T09:00:00", "premarket", "Today 9:30 AM ET", "2026-01-16T14:30:00+00:00", "4:00 AM ET"),
    ("2026-01-16T17:00:00", "regular", "Tuesday 9:30 AM ET", "2026-01-20T14:30:00+00:00", "12:00 PM ET"),  # King's day
    ("2025-09-19T19:00:00", "regular", "Monday 9:30 AM ET", "2025-09-22T13:30:00+00:00", "3:00 PM ET"),  # the spec's
    ("2025-01-09T15:00:00", "closed", "Tomorrow 9:30 AM ET", "2025-01-10T14:30:00+00:00", "10:00 AM ET"),  # mourning
    ("2026-07-03T15:00:00", "closed", "Monday 9:30 AM ET", "2026-07-06T13:30:00+00:00", "11:00 AM ET"),
    ("2026-11-26T16:00:00", "closed", "Tomorrow 9:30 AM ET", "2026-11-27T14:30:00+00:00", "11:00 AM ET"),
    ("2026-11-27T17:59:59", "regular", "Monday 9:30 AM ET", "2026-11-30T14:30:00+00:00", "12:59 PM ET"),  # early close
    ("2026-11-27T18:00:00", "afterhours", "Monday 9:30 AM ET", "2026-11-30T14:30:00+00:00", "1:00 PM ET"),
    ("2026-11-27T22:00:00", "closed", "Monday 9:30 AM ET", "2026-11-30T14:30:00+00:00", "5:00 PM ET"),
    ("2026-03-06T21:30:00", "afterhours", "Monday 9:30 AM ET", "2026-03-09T13:30:00+00:00", "4:30 PM ET"),  # March
    ("2026-03-08T06:59:59", "closed", "Tomorrow 9:30 AM ET", "2026-03-09T13:30:00+00:00", "1:59 AM ET"),
    ("2026-03-08T07:00:00", "closed", "Tomorrow 9:30 AM ET", "2026-03-09T13:30:00+00:00", "3:00 AM ET"),
    ("2026-03-09T13:30:00", "regular", "Tomorrow 9:30 AM ET", "2026-03-10T13:30:00+00:00", "9:30 AM ET"),
    ("2026-10-30T13:30:00", "regular", "Monday 9:30 AM ET", "2026-11-02T14:30:00+00:00", "9:30 AM ET"),  # and back
    ("2026-11-01T05:59:59", "closed", "Tomorrow 9:30 AM ET", "2026-11-02T14:30:00+00:00", "1:59 AM ET"),
    ("2026-11-01T06:00:00", "closed", "Tomorrow 9:30 AM ET", "2026-11-02T14:30:00+00:00", "1:00 AM ET"),
    ("2026-11-02T13:30:00", "premarket", "Today 9:30 AM ET", "2026-11-02T14:30:00+00:00", "8:30 AM ET"),
]  # fmt: skip


@pytest.mark.parametrize("instant, session, opening, opening_iso, clock", STATUSES, ids=[row[0] for row in STATUSES])
async def test_a_moment_has_its_session_and_the_opening_that_follows(
    chart_at, instant, session, opening, opening_iso, clock
):
    chart = await chart_at(at(instant))
    assert await chart("check_market_status") == {
        "stocks": {
            "open": session == "regular",
            "session": session,
            "next_open": opening,
            "next_open_iso": opening_iso,
            "current_time_et": clock,
        },
        "crypto": {"open": True, "note": "24/7 trading"},
        "timestamp": f"{instant}+00:00",
        "source": "calendar",
    }
