"""The order of work, and that every failure becomes an answer in the spec's words."""

from __future__ import annotations

import asyncio
import logging
from hashlib import sha256
from typing import Annotated, Any

import pytest
from pydantic import Field

from quantdeck.core.cache import cache
from quantdeck.core.call import STAGES, Call, Caller, Progress, chain
from quantdeck.core.contract import Policy
from quantdeck.core.errors import ErrorCode, QueryFailed, ToolError, Unreachable
from quantdeck.core.limits import limit_rate
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.declaring import read
from quantdeck.dialects.tradestream import tradestream
from tests.support.runtime import ALICE, Desk, Program, body, error_of

UNDECLARED = ErrorCode("UNDECLARED", "Nobody promised this", 418)
SECRETS = ("postgresql://joe:hunter2@db/prod", "/home/joe/.quantdeck/desk.db", "relation secrets does not exist")


@tradestream.tool(errors=())
async def ask(desk: Desk, number: Annotated[int, Field(description="A number")] = 0) -> dict[str, Any]:
    """Ask the desk."""
    return {"asked": await desk.ask(), "number": number}


@catalog.tool("ask.much", deadline_ms=5000, p95_ms=1, per_minute=1)
async def ask_much(desk: Desk, number: Annotated[int, Field(description="A number")] = 0) -> dict[str, Any]:
    """Ask the desk."""
    return {"asked": await desk.ask(), "number": number}


def test_the_stages_stand_in_the_order_of_the_architecture():
    names = [stage.__name__ for stage in STAGES]
    assert names == [
        "observe", "contain_errors", "deadline", "authorize", "limit_rate", "validate", "run_once", "cache", "handle",
    ]  # fmt: skip


def test_a_chain_holds_only_what_its_policy_uses():
    assert limit_rate(ask) is None
    assert cache(ask) is None
    assert limit_rate(ask_much) is not None


async def test_a_chain_is_built_once_and_serves_any_number_of_calls():
    program = Program()
    built = chain(ask)
    answers = [body(await built(Call(ask, {"number": n}, program.runtime, ALICE))) for n in range(3)]
    assert [answer["data"]["number"] for answer in answers] == [0, 1, 2]


async def test_a_caller_without_the_right_is_refused_before_anything_is_looked_at():
    program = Program()
    outsider = Caller("eve", scopes=frozenset())
    program.coordination.taking.shut()
    code, _, _ = error_of(await program.call(ask_much, {"number": "wrong"}, caller=outsider))
    assert (code, program.desk.asked) == ("MCP-002", 0)
    assert not program.coordination.taking.arrived.is_set()


async def test_the_rate_is_limited_before_arguments_are_looked_at():
    program = Program()
    first = error_of(await program.call(ask_much, {"number": "wrong"}))
    second = error_of(await program.call(ask_much, {"number": "wrong"}))
    assert (first[0], second[0]) == ("MCP-001", "MCP-006")


@pytest.mark.parametrize(
    "scopes, servers, effect, granted",
    [
        ({"*"}, {"*"}, True, True),
        ({"read"}, {"*"}, False, True),
        ({"read"}, {"*"}, True, False),
        ({"write"}, {"*"}, False, False),
        ({"read", "write"}, {"test-server"}, True, True),
        ({"*"}, {"another-server"}, False, False),
        (set(), set(), False, False),
    ],
)
async def test_a_call_needs_the_scope_and_the_server(scopes, servers, effect, granted):
    @tradestream.tool(errors=(), effect=effect)
    async def tool() -> dict[str, Any]:
        """Do."""
        return {}

    caller = Caller("carol", frozenset(scopes), frozenset(servers))
    answer = await Program().call(tool, caller=caller)
    assert answer.is_error is not granted
    if not granted:
        assert (answer.code, answer.status) == ("UNAUTHORIZED", 401)


async def test_a_tool_with_a_secret_asks_for_it_only_where_it_is_set():
    @tradestream.tool(errors=(), secret="portfolio")
    async def tool() -> dict[str, Any]:
        """Do."""
        return {}

    program = Program()
    assert not (await program.call(tool)).is_error
    program.runtime.secrets = {"portfolio": "s3cret"}
    refused = await program.call(tool)
    assert (refused.code, b"s3cret" in refused.encoded) == ("UNAUTHORIZED", False)
    assert (await program.call(tool, caller=Caller("x", secret=sha256(b"other").hexdigest()))).is_error
    assert not (await program.call(tool, caller=Caller("x", secret=sha256(b"s3cret").hexdigest()))).is_error


def test_neither_a_callers_nor_a_programs_secret_is_in_a_repr():
    program = Program()
    program.runtime.secrets = {"portfolio": "s3cret"}
    call = Call(ask, {}, program.runtime, Caller("x", secret="d1gest"), upstream_token="t0ken")
    assert not any(word in repr(call) for word in ("s3cret", "d1gest", "t0ken"))


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("kind", [RuntimeError, OSError, ValueError, KeyError, TimeoutError, RecursionError])
async def test_an_unexpected_failure_says_nothing_of_its_reason_but_the_log_does(secret, kind, caplog):
    program = Program()
    program.desk.failure = kind(secret)
    answer = await program.call(ask, request_id="r-1")
    assert (answer.code, answer.status) == ("DATABASE_ERROR", 500)
    assert secret not in answer.encoded.decode()
    assert body(answer)["error"]["details"] == {"request_id": "r-1"}
    assert secret in caplog.text or repr(secret) in caplog.text


@pytest.mark.parametrize("secret", SECRETS)
async def test_a_drivers_text_beneath_a_source_failure_goes_to_the_log_only(secret, caplog):
    program = Program()
    program.desk.failure = Unreachable("The database does not answer.", source="fake")
    program.desk.failure.__cause__ = OSError(secret)
    answer = await program.call(ask)
    assert body(answer)["error"]["message"] == "The database does not answer."
    assert secret not in answer.encoded.decode()
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.fields["why"] is program.desk.failure, "the log follows its causes: observability/test_logs.py"


async def test_a_code_that_was_not_declared_does_not_leave_the_server():
    program = Program()
    program.desk.failure = UNDECLARED("I am a teapot", secret="details")
    code, sentence, details = error_of(await program.call(ask, request_id="r-2"))
    assert (code, details) == ("DATABASE_ERROR", {"request_id": "r-2"})
    assert "teapot" not in sentence


async def test_an_answer_that_cannot_be_encoded_is_a_failure_of_ours():
    @tradestream.tool(errors=())
    async def odd() -> dict[str, Any]:
        """Answer an object."""
        return {"thing": object()}

    assert error_of(await Program().call(odd))[0] == "DATABASE_ERROR"


async def test_the_first_failure_of_a_task_group_speaks_for_it():
    @tradestream.tool(errors=())
    async def both(desk: Desk) -> dict[str, Any]:
        """Ask twice at once."""
        async with asyncio.TaskGroup() as outer:
            outer.create_task(desk.ask())
            outer.create_task(desk.ask())
        return {}

    program = Program()
    program.desk.failure = QueryFailed("The database refused the query.", source="fake")
    assert error_of(await program.call(both))[:2] == ("DATABASE_ERROR", "The database refused the query.")


async def test_nothing_but_zero_and_missing_are_told_apart():
    @tradestream.tool(errors=())
    async def figures() -> dict[str, Any]:
        """Answer figures."""
        return {"zero": 0.0, "missing": None, "nan": float("nan"), "infinite": float("inf")}

    data = body(await Program().call(figures))["data"]
    assert data == {"zero": 0.0, "missing": None, "nan": None, "infinite": None}


async def test_a_cancelled_call_stays_cancelled():
    program = Program()
    program.desk.gate.shut()
    call = program.begin(ask)
    await program.desk.gate.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert program.desk.gate.cancelled == 1


async def test_progress_reaches_whoever_asked_for_it_and_nobody_else():
    told: list[Any] = []

    async def listen(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async def long(progress: Progress) -> dict[str, Any]:
        """Take long."""
        await progress(1, 2, "half")
        return {}

    tool = read(long, dialect=tradestream, policy=Policy())
    await Program().call(tool)
    await Program().call(tool, progress=Progress(listen))
    assert told == [(1, 2, "half")]


async def test_a_caller_is_given_to_a_tool_that_asks_who_calls():
    @tradestream.tool(errors=())
    async def who(caller: Caller) -> dict[str, Any]:
        """Say who calls."""
        return {"id": caller.id}

    assert body(await Program().call(who))["data"] == {"id": "alice"}


async def test_an_output_is_held_against_its_schema_where_the_spec_wants_it():
    @catalog.tool("lie", deadline_ms=5000, p95_ms=1, per_minute=100)
    async def lie() -> dict[str, int]:
        """Answer something else."""
        return {"n": "not a number"}  # type: ignore[dict-item]

    code, sentence, _ = error_of(await Program().call(lie))
    assert code == "MCP-009"
    assert "not a number" not in sentence


def test_an_error_knows_its_code_sentence_and_facts():
    error = UNDECLARED("No", fact=1)
    assert isinstance(error, ToolError)
    assert (error.code, error.message, error.details, str(error)) == (UNDECLARED, "No", {"fact": 1}, "No")


async def test_a_source_that_is_cancelled_by_another_is_a_failure_like_any():
    program = Program()
    program.desk.failure = asyncio.CancelledError()
    answer = await program.call(ask)
    assert (answer.code, "did not foresee" in error_of(answer)[1]) == ("DATABASE_ERROR", True)
    program.desk.failure = None
    assert not (await program.call(ask)).is_error


async def test_a_caller_that_leaves_is_not_answered():
    program = Program()
    program.desk.gate.shut()
    call = program.begin(ask)
    await program.desk.gate.arrived.wait()
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()
