"""A sliding minute per client and tool, which a cached or replayed answer uses up as well."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.core.limits import Grant
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.pyth import pyth
from quantdeck.dialects.tradestream import tradestream
from quantdeck.sources.coordination.embedded import WINDOW_S, SlidingWindows
from tests.support.clock import Ticks
from tests.support.runtime import BOB, Desk, Program, body, error_of


@catalog.tool("look", deadline_ms=5000, p95_ms=1, per_minute=3, cache_s=60)
async def look(desk: Desk) -> dict[str, Any]:
    """Look."""
    return {"asked": await desk.ask()}


@catalog.tool("peek", deadline_ms=5000, p95_ms=1, per_minute=3)
async def peek(desk: Desk) -> dict[str, Any]:
    """Peek."""
    return {"asked": await desk.ask()}


@pytest.fixture
def program() -> Program:
    return Program()


async def granted(program: Program, tool: Any = look, **facts: Any) -> bool:
    answer = await program.call(tool, **facts)
    assert answer.code in (None, "MCP-006")
    return not answer.is_error


async def test_one_call_more_than_allowed_is_refused_with_the_seconds_to_wait(program):
    for _ in range(3):
        assert await granted(program)
        program.ticks.advance(10)
    refused = await program.call(look)
    assert (refused.code, refused.status) == ("MCP-006", 429)
    assert error_of(refused)[2] == {"limit": 3, "retry_after_s": 30}
    assert "3 calls per minute; retry in 30 s" in error_of(refused)[1]


async def test_the_window_slides(program):
    for _ in range(3):
        assert await granted(program)
        program.ticks.advance(10)
    assert not await granted(program)
    program.ticks.advance(30)
    assert await granted(program), "the first of the three is a minute old now"
    assert not await granted(program), "the second is not"


async def test_a_refused_call_costs_nothing(program):
    for _ in range(10):
        await granted(program)
    program.ticks.advance(WINDOW_S)
    assert [await granted(program) for _ in range(4)] == [True, True, True, False]


async def test_a_cached_answer_costs_a_token(program):
    assert [await granted(program) for _ in range(4)] == [True, True, True, False]
    assert program.desk.asked == 1


async def test_a_replayed_answer_costs_a_token(program):
    answers = [await program.call(peek, idempotency_key="k") for _ in range(4)]
    assert [answer.code for answer in answers] == [None, None, None, "MCP-006"]
    assert program.desk.asked == 1


async def test_clients_and_tools_do_not_share_their_limits(program):
    for _ in range(3):
        assert await granted(program)
    assert await granted(program, caller=BOB)
    assert await granted(program, peek)
    assert not await granted(program)


async def test_a_setting_overrides_the_spec_and_0_lifts_the_limit(program):
    program.runtime.per_minute = {"look": 1, "peek": 0}
    assert [await granted(program) for _ in range(2)] == [True, False]
    assert all([await granted(program, peek) for _ in range(20)])


async def test_a_spec_without_a_limit_does_not_ask_for_one(program):
    @pyth.tool()
    async def feeds() -> dict[str, Any]:
        """Feeds."""
        return {}

    @tradestream.tool(errors=())
    async def rank() -> dict[str, Any]:
        """Rank."""
        return {}

    program.coordination.taking.shut()
    for tool in (feeds, rank):
        assert not (await program.call(tool)).is_error


async def test_every_answer_says_how_the_window_stands(program):
    answers = [await program.call(look) for _ in range(4)]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert {answer.headers["X-RateLimit-Limit"] for answer in answers} == {"3"}
    assert ["Retry-After" in answer.headers for answer in answers] == [False, False, False, True]


@pytest.mark.parametrize("reset_s, wait_s", [(59.2, 60), (60.0, 60), (0.4, 1), (0.0, 1)])
def test_the_wait_is_rounded_up_and_never_zero(reset_s, wait_s):
    assert Grant(granted=False, limit=3, remaining=0, reset_s=reset_s).wait_s == wait_s


async def test_a_failing_call_says_how_the_window_stands_too(program):
    program.desk.failure = ValueError("bug")
    answer = await program.call(peek)
    assert (answer.code, answer.headers["X-RateLimit-Remaining"]) == ("MCP-999", "2")
    assert body(answer)["tool"] == "peek"


@given(steps=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 40)), max_size=60), limit=st.integers(1, 5))
def test_no_minute_ever_has_more_calls_than_the_limit(steps, limit):
    ticks = Ticks()
    windows = SlidingWindows(clock=ticks)
    let_through: dict[str, list[float]] = {"a": [], "b": []}
    for client, pause_s in steps:
        ticks.advance(pause_s)
        grant = windows.take(client, "tool", limit)
        recent = [at for at in let_through[client] if at > ticks() - WINDOW_S]
        assert grant.granted is (len(recent) < limit)
        if grant.granted:
            let_through[client].append(ticks())
        assert grant.remaining == limit - len(recent) - grant.granted
        assert 0 <= grant.reset_s <= WINDOW_S


def test_memory_is_bounded_by_forgetting_the_longest_silent():
    windows = SlidingWindows(max_clients=100, clock=Ticks())
    for number in range(1000):
        windows.take(f"client {number}", "tool", 1)
        windows.take("regular", "tool", 2)
    assert len(windows._windows) == 100
    assert not windows.take("regular", "tool", 2).granted


def test_a_window_keeps_no_more_than_its_limit():
    windows = SlidingWindows(clock=Ticks())
    for _ in range(1000):
        windows.take("a", "tool", 5)
    assert len(windows._windows["a", "tool"]) == 5
