"""When a Pyth feed's market is open."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quantdeck.domain.pyth_schedules import schedule_of

ALWAYS = "America/New_York;O,O,O,O,O,O,O;"
NEW_YORK = "America/New_York;0930-1600,0930-1600,0930-1600,0930-1600,0930-1600,C,C;1225/C,1224/0930-1300"
CURRENCIES = "America/New_York;O,O,O,O,0000-1700,C,1700-2400;1225/C"
_BREAK = "0900-1130&1230-1530"
LUNCH = f"Asia/Tokyo;{','.join([_BREAK] * 5)},C,C;"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "schedule, instant, is_open, changes_at",
    [
        (ALWAYS, "2026-06-06T12:00", True, None),
        (NEW_YORK, "2026-06-05T13:29:59", False, "2026-06-05T13:30"),
        (NEW_YORK, "2026-06-05T13:30", True, "2026-06-05T20:00"),
        (NEW_YORK, "2026-06-05T20:00", False, "2026-06-08T13:30"),  # over a weekend
        (NEW_YORK, "2026-01-05T14:00", False, "2026-01-05T14:30"),  # winter
        (NEW_YORK, "2026-12-24T17:00", True, "2026-12-24T18:00"),  # closes early
        (NEW_YORK, "2026-12-25T17:00", False, "2026-12-28T14:30"),
        (CURRENCIES, "2026-06-05T20:59", True, "2026-06-05T21:00"),
        (CURRENCIES, "2026-06-06T12:00", False, "2026-06-07T21:00"),
        (CURRENCIES, "2026-06-08T12:00", True, "2026-06-12T21:00"),  # midnights are no close
        (LUNCH, "2026-06-05T03:00", False, "2026-06-05T03:30"),
        ("UTC;C,C,C,C,C,C,C;", "2026-06-05T03:00", False, None),
    ],
)
def test_a_market_is_as_its_schedule_says(schedule, instant, is_open, changes_at):
    read = schedule_of(schedule)
    assert read is not None
    state = read.state(at(instant))
    assert (state.is_open, state.changes_at) == (is_open, changes_at and at(changes_at))


@pytest.mark.parametrize(
    "text",
    ["", "UTC", "UTC;O;", "Mars/Olympus;O,O,O,O,O,O,O;", "UTC;O,O,O,O,O,O,2500-2600;", "UTC;O,O,O,O,O,O,X;",
     "UTC;O,O,O,O,O,O,O;notadate", "UTC;O,O,O,O,O,O,O;0101/C;more", "../etc/passwd;O,O,O,O,O,O,O;"],
)  # fmt: skip
def test_a_schedule_that_cannot_be_read_is_none(text):
    assert schedule_of(text) is None
