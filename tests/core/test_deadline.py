"""Nothing behind the deadline takes longer than it; what has begun to change something is not broken off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from quantdeck.core.errors import Busy, ErrorCode
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.tradestream import tradestream
from tests.support.runtime import Coordinated, Desk, Gate, Program, body, error_of, turns

SOON_S = 0.02  # somewhere must be a deadline that passes; nothing is asserted about how long that takes


@catalog.tool("look", deadline_ms=60_000, p95_ms=1, per_minute=100, cache_s=30)
async def look(desk: Desk) -> dict[str, Any]:
    """Look."""
    return {"asked": await desk.ask()}


@catalog.tool("change", deadline_ms=60_000, p95_ms=1, per_minute=100, effect=True)
async def change(desk: Desk, by: Annotated[int, Field(description="By how much")] = 1) -> dict[str, Any]:
    """Change."""
    return {"asked": await desk.ask(), "by": by}


@pytest.fixture
async def program() -> AsyncIterator[Program]:
    made = Program()
    made.runtime.deadline_s = {"look": SOON_S, "change": SOON_S}
    yield made
    made.desk.gate.open()
    await made.runtime.tasks.finish(30)


def gates(program: Program) -> dict[str, Gate]:
    coordination: Coordinated = program.coordination
    return {"limiter": coordination.taking, "journal": coordination.journaling, "source": program.desk.gate}


@pytest.mark.parametrize("place", ["limiter", "journal", "source"])
async def test_a_deadline_covers_every_wait(program, place):
    gate = gates(program)[place].shut()
    code, sentence, details = error_of(await program.call(look, idempotency_key="k"))
    assert code == "MCP-004"
    assert "timeout" in sentence.lower()
    assert details == {"timeout_ms": 20}
    assert gate.arrived.is_set()


async def test_a_deadline_covers_the_wait_for_anothers_flight(program):
    program.desk.gate.shut()
    program.runtime.deadline_s = {}
    first = program.begin(look)
    await program.desk.gate.arrived.wait()
    program.runtime.deadline_s = {"look": SOON_S}
    assert error_of(await program.call(look))[0] == "MCP-004"
    assert program.desk.gate.cancelled == 0, "the first still waits for it"
    program.desk.gate.open()
    assert body(await first) == {"asked": 1}


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_read_that_is_too_late_is_cancelled(program, key):
    program.desk.gate.shut()
    await program.call(look, idempotency_key=key)
    await turns()
    assert (program.desk.gate.cancelled, program.desk.finished) == (1, 0)


@pytest.mark.parametrize("key", [None, "k"])
async def test_an_effect_that_has_begun_finishes_although_its_callers_deadline_passed(program, key):
    program.desk.gate.shut()
    code, sentence, details = error_of(await program.call(change, idempotency_key=key))
    assert (code, details) == ("MCP-004", {"timeout_ms": 20, "outcome": "unknown"})
    assert "same idempotency key" in sentence
    program.desk.gate.open()
    await program.runtime.tasks.finish(30)
    assert (program.desk.gate.cancelled, program.desk.finished) == (0, 1)


@pytest.mark.parametrize("key", [None, "k"])
async def test_an_effect_that_has_begun_finishes_although_its_caller_was_cancelled(program, key):
    program.runtime.deadline_s = {}
    program.desk.gate.shut()
    call = program.begin(change, idempotency_key=key)
    await program.desk.gate.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    program.desk.gate.open()
    await program.runtime.tasks.finish(30)
    assert (program.desk.gate.cancelled, program.desk.finished) == (0, 1)


@pytest.mark.parametrize("place", ["limiter", "journal"])
async def test_an_effect_that_has_not_begun_never_does(program, place):
    gate = gates(program)[place].shut()
    details = error_of(await program.call(change, idempotency_key="k"))[2]
    assert details["outcome"] == "not_started"
    gate.open()
    await program.runtime.tasks.finish(30)
    assert program.desk.asked == 0


async def test_a_cancelled_caller_takes_an_effect_with_him_that_has_not_begun(program):
    program.runtime.deadline_s = {}
    program.coordination.journaling.shut()
    call = program.begin(change, idempotency_key="k")
    await program.coordination.journaling.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    program.coordination.journaling.open()
    await program.runtime.tasks.finish(30)
    assert program.desk.asked == 0


async def test_what_finished_behind_a_deadline_is_replayed_to_the_retry(program):
    program.desk.gate.shut()
    await program.call(change, {"by": 3}, idempotency_key="k")
    program.desk.gate.open()
    await program.runtime.tasks.finish(30)
    again = await program.call(change, {"by": 3}, idempotency_key="k")
    assert (body(again), program.desk.asked) == ({"asked": 1, "by": 3}, 1)


async def test_a_failure_behind_a_deadline_disturbs_nobody(program):
    program.desk.gate.shut()
    program.desk.failure = Busy("Busy", source="fake")
    await program.call(change)
    program.desk.gate.open()
    await program.runtime.tasks.finish(30)
    program.desk.failure = None
    assert not (await program.call(change)).is_error


async def test_a_timeout_that_a_driver_raises_is_not_the_deadline(program):
    program.runtime.deadline_s = {}
    program.desk.failure = TimeoutError("connect to 10.0.0.7")
    code, sentence, _ = error_of(await program.call(look))
    assert code == "MCP-999"
    assert "10.0.0.7" not in sentence


async def test_a_deadline_of_0_is_none(program):
    program.runtime.deadline_s = {"look": 0}
    program.desk.gate.shut()
    call = program.begin(look)
    await program.desk.gate.arrived.wait()
    await turns()
    assert not call.done()
    program.desk.gate.open()
    assert not (await call).is_error


def test_the_contract_says_how_long_a_tool_may_take():
    @tradestream.tool(errors=())
    async def plain() -> dict[str, Any]:
        """Plain."""
        return {}

    assert plain.policy.deadline_s == 20
    assert look.policy.deadline_s == 60


SLOW = ErrorCode("BACKTEST_TIMEOUT", "Took too long", 504)


@tradestream.tool(deadline_s=SOON_S, timeout=SLOW, errors=(SLOW,))
async def simulate(desk: Desk) -> dict[str, Any]:
    """Simulate."""
    return {"asked": await desk.ask()}


async def test_a_tool_may_have_a_code_of_its_own_for_its_deadline(program):
    program.desk.gate.shut()
    code, sentence, details = error_of(await program.call(simulate))
    assert (code, details) == ("BACKTEST_TIMEOUT", {"timeout_ms": 20})
    assert sentence.startswith("Timeout")
