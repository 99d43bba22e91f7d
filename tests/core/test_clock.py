"""World time: the wall clock, or one instant at which the world stands still."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.core.clock import Clock, Now, iso
from quantdeck.core.wire import canonical, encode
from quantdeck.dialects.tradestream import tradestream
from tests.support.clock import INSTANT
from tests.support.runtime import Program, body

INSTANTS = st.datetimes(timezones=st.timezones() | st.just(UTC)).filter(lambda at: 2 < at.year < 9998)


@tradestream.tool(errors=(), cache_s=30)
async def tell(now: Now) -> dict[str, Any]:
    """Tell the time."""
    return {"now": now, "fixed": now.fixed}


def test_the_wall_clock_moves_and_is_not_fixed():
    clock = Clock.parse("wall")
    before = datetime.now(UTC)
    now = clock.now()
    assert before <= now <= datetime.now(UTC)
    assert (clock.fixed, now.fixed, now.tzinfo) == (False, False, UTC)


@pytest.mark.parametrize(
    "text", ["2026-01-15T09:30:00Z", "2026-01-15T10:30:00+01:00", "2026-01-15T09:30+00:00", "2026-01-15T04:30:00-05:00"]
)
def test_a_fixed_clock_stands_at_its_instant(text):
    clock = Clock.parse(text)
    assert clock.fixed
    assert clock.now() == clock.now() == INSTANT
    assert clock.now().fixed
    assert clock.now().tzinfo is UTC


@pytest.mark.parametrize("text", ["2026-01-15T09:30:00", "2026-01-15"])
def test_an_instant_without_an_offset_is_refused_with_the_way_to_write_it(text):
    with pytest.raises(ValueError, match="an offset from UTC; write it like 2026-01-15T09:30:00Z"):
        Clock.parse(text)


@pytest.mark.parametrize("text", ["", "now", "WALL", "yesterday", "1768469400"])
def test_what_is_no_instant_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own sentence
        Clock.parse(text)


def test_a_naive_datetime_is_no_instant():
    naive = INSTANT.replace(tzinfo=None)
    with pytest.raises(ValueError, match="offset"):
        Now.of(naive, fixed=True)
    with pytest.raises(ValueError, match="offset"):
        Clock(naive)


@given(instant=INSTANTS, fixed=st.booleans())
def test_a_now_is_pickled_and_copied_whole(instant, fixed):
    now = Now.of(instant, fixed=fixed)
    for twin in (pickle.loads(pickle.dumps(now)), copy.copy(now), copy.deepcopy(now)):  # noqa: S301 - our own
        assert (twin, twin.fixed, type(twin)) == (instant.astimezone(UTC), fixed, Now)


@pytest.mark.parametrize("fixed", [True, False])
def test_what_is_computed_from_a_now_stands_in_the_past_and_can_be_pickled(fixed):
    earlier = Now.of(INSTANT, fixed=fixed) - timedelta(hours=24)
    assert isinstance(earlier, Now)
    assert earlier.fixed, "rows updated since then must not be shown as of then"
    assert pickle.loads(pickle.dumps(earlier)) == earlier  # noqa: S301 - our own


def test_a_now_is_encoded_like_any_instant():
    now = Now.of(INSTANT.replace(microsecond=5), fixed=True)
    assert encode({"at": now}) == b'{"at":"2026-01-15T09:30:00.000005Z"}'
    assert canonical([now]) == canonical([now.astimezone(UTC)])


@given(instant=INSTANTS)
def test_iso_is_utc_with_a_z_and_reads_back_the_same(instant):
    text = iso(instant)
    assert text.endswith("Z")
    assert "+" not in text
    assert datetime.fromisoformat(text) == instant.astimezone(UTC)


def test_iso_has_fractions_only_where_there_are_any():
    assert iso(INSTANT.astimezone(timezone(timedelta(hours=5)))) == "2026-01-15T09:30:00Z"
    assert iso(INSTANT.replace(microsecond=120_000)) == "2026-01-15T09:30:00.120000Z"


async def test_two_reads_in_one_call_agree_on_the_present():
    @tradestream.tool(errors=())
    async def twice(one: Now, two: Now) -> dict[str, Any]:
        """Tell the time twice."""
        return {"same": one is two}

    assert body(await Program().call(twice))["data"] == {"same": True}


async def test_a_tool_is_told_the_time_of_the_world_not_of_the_machine():
    program = Program(clock=Clock(INSTANT))
    assert body(await program.call(tell))["data"] == {"now": "2026-01-15T09:30:00Z", "fixed": True}


async def test_time_to_live_is_machine_time_and_passes_while_the_world_stands_still():
    program = Program(clock=Clock(INSTANT))
    cached = []
    for _ in range(3):
        cached.append(body(await program.call(tell))["_metadata"]["cached"])
        program.ticks.advance(20)
    assert cached == [False, True, False]


async def test_an_answer_of_one_instant_is_never_given_at_another():
    program = Program()
    for instant in (INSTANT, INSTANT + timedelta(microseconds=1), INSTANT):
        program.runtime.clock = Clock(instant)
        assert body(await program.call(tell))["data"]["now"] == iso(instant)
