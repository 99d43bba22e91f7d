"""What holds in each spec: its own code, and our own words, for everything that can go wrong."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import Field

from quantdeck.core.call import Caller
from quantdeck.core.contract import Contract, Policy
from quantdeck.core.dialect import Dialect
from quantdeck.core.errors import (
    Busy,
    Denied,
    ErrorCode,
    NotConfigured,
    NotInPast,
    QueryFailed,
    SourceError,
    ToolError,
    Unreachable,
)
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects.backtest_events import RUN_NOT_FOUND
from quantdeck.dialects.catalog import CODES
from quantdeck.dialects.chart import INVALID_SYMBOL
from quantdeck.dialects.declaring import read
from quantdeck.dialects.pyth import NOT_FOUND
from quantdeck.dialects.tradestream import INVALID_SYMBOL as NO_PAIR
from tests.support.dialects import DIALECTS
from tests.support.runtime import Desk, Program, body, error_of

SECRET = "postgresql://joe:hunter2@10.0.0.7/prod and /home/joe/.quantdeck/desk.db"
KEY_NOT_FOUND = next(code for code in CODES if code.code == "MCP-013")


async def look(desk: Desk, number: Annotated[int, Field(description="A number")] = 1) -> dict[str, Any]:
    """Look."""
    return {"asked": await desk.ask(), "number": number}


@dataclass(frozen=True)
class Published:
    """What a published spec says: a code of a tool's own, and of each kind of failure code and status."""

    own: ErrorCode
    codes: dict[str, tuple[str, int]]


PUBLISHED = {
    "tradestream": Published(
        NO_PAIR,
        {
            "own": ("INVALID_SYMBOL", 400),
            "invalid": ("INVALID_PARAMETER", 400),
            "timeout": ("TIMEOUT", 504),
            "unexpected": ("DATABASE_ERROR", 500),
            "unauthorized": ("UNAUTHORIZED", 401),
            "Unreachable": ("DATABASE_ERROR", 500),
            "QueryFailed": ("DATABASE_ERROR", 500),
            "Busy": ("DATABASE_ERROR", 500),
            "NotConfigured": ("DATABASE_ERROR", 500),
            "Denied": ("DATABASE_ERROR", 500),
            "NotInPast": ("NOT_FOUND", 404),
        },
    ),
    "chart": Published(
        INVALID_SYMBOL,
        {
            "own": ("-32002", 400),
            "invalid": ("-32602", 400),
            "timeout": ("-32004", 503),
            "unexpected": ("-32603", 500),
            "unauthorized": ("-32600", 401),
            "Unreachable": ("-32004", 503),
            "QueryFailed": ("-32004", 503),
            "Busy": ("-32004", 503),
            "NotConfigured": ("-32004", 503),
            "Denied": ("-32004", 503),
            "NotInPast": ("-32004", 503),
        },
    ),
    "backtest_events": Published(
        RUN_NOT_FOUND,
        {
            "own": ("RUN_NOT_FOUND", 404),
            "invalid": ("INVALID_PARAMETER", 400),
            "timeout": ("QUERY_TIMEOUT", 408),
            "unexpected": ("DATABASE_ERROR", 500),
            "unauthorized": ("UNAUTHORIZED", 401),
            "Unreachable": ("DATABASE_ERROR", 500),
            "QueryFailed": ("DATABASE_ERROR", 500),
            "Busy": ("DATABASE_ERROR", 500),
            "NotConfigured": ("DATABASE_ERROR", 500),
            "Denied": ("UNAUTHORIZED", 401),
            "NotInPast": ("DATABASE_ERROR", 500),
        },
    ),
    "catalog": Published(
        KEY_NOT_FOUND,
        {
            "own": ("MCP-013", 404),
            "invalid": ("MCP-001", 400),
            "timeout": ("MCP-004", 504),
            "unexpected": ("MCP-999", 500),
            "unauthorized": ("MCP-002", 401),
            "Unreachable": ("MCP-003", 503),
            "QueryFailed": ("MCP-003", 503),
            "Busy": ("MCP-003", 503),
            "NotConfigured": ("MCP-003", 503),
            "Denied": ("MCP-002", 401),
            "NotInPast": ("MCP-003", 503),
        },
    ),
    "pyth": Published(
        NOT_FOUND,
        {
            "own": ("not_found", 404),
            "invalid": ("-32602", 400),
            "timeout": ("timeout", 504),
            "unexpected": ("internal", 500),
            "unauthorized": ("auth", 401),
            "Unreachable": ("upstream", 502),
            "QueryFailed": ("upstream", 502),
            "Busy": ("upstream", 502),
            "NotConfigured": ("upstream", 502),
            "Denied": ("auth", 401),
            "NotInPast": ("upstream", 502),
        },
    ),
}
KINDS: list[type[SourceError]] = [Unreachable, QueryFailed, Busy, NotConfigured, Denied, NotInPast]


@dataclass(frozen=True)
class Spec:
    """A dialect, a tool that speaks it, a failure of its own, and what its spec says of failures."""

    dialect: Dialect
    tool: Contract
    own: ToolError
    codes: dict[str, tuple[str, int]]


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def spec(request) -> Spec:
    dialect: Dialect = request.param
    published = PUBLISHED.get(dialect.name) or Published(dialect.unavailable, _by_itself(dialect))
    tool = read(look, dialect=dialect, policy=Policy(), errors=(published.own,))
    return Spec(dialect, tool, published.own("No such thing", symbol="X"), published.codes)


def _by_itself(dialect: Dialect) -> dict[str, tuple[str, int]]:
    """What a dialect says where no published spec does; which codes its sources' failures have is its own affair."""
    codes = {
        "own": dialect.unavailable,
        "invalid": dialect.invalid,
        "timeout": dialect.timeout,
        "unexpected": dialect.internal,
        "unauthorized": dialect.unauthorized,
    }
    return {kind: (code.code, code.status) for kind, code in codes.items()}


def expect(outcome: Any, spec: Spec, kind: str) -> tuple[str, dict[str, Any]]:
    told, sentence, details = error_of(outcome)
    assert (told, outcome.status) == spec.codes.get(kind, (told, outcome.status))
    assert told in spec.tool.may_answer
    assert outcome.code == told
    return sentence, details


def everything(outcome: Any) -> str:
    """All that leaves the server."""
    if isinstance(outcome, RpcFailure):
        return str(outcome)
    return f"{body(outcome)} {outcome.text} {outcome.meta} {outcome.headers}"


async def test_a_success_holds_the_data_and_names_its_source(spec):
    answer = await Program().call(spec.tool, {"number": 7})
    assert isinstance(answer, Answer)
    told = body(answer)
    data = told.get("data", told)  # in an envelope, if the spec has one
    assert data == {"asked": 1, "number": 7}
    assert (answer.is_error, answer.status, answer.code) == (False, 200, None)
    assert answer.meta["quantdeck/source"] == "fake"


async def test_a_tools_own_failure_keeps_code_sentence_and_facts(spec):
    program = Program()
    program.desk.failure = spec.own
    sentence, details = expect(await program.call(spec.tool), spec, "own")
    assert sentence.endswith(spec.own.message)
    assert details == {"symbol": "X"}


async def test_a_bad_argument_is_the_specs_invalid_code(spec):
    sentence, _ = expect(await Program().call(spec.tool, {"number": "x"}), spec, "invalid")
    assert "invalid arguments: number must be an integer" in sentence.lower()


async def test_an_unknown_argument_is_the_specs_invalid_code(spec):
    sentence, _ = expect(await Program().call(spec.tool, {"amount": 1}), spec, "invalid")
    assert "it takes number" in sentence


async def test_a_call_that_takes_too_long_is_the_specs_timeout_and_reads_like_one(spec):
    program = Program()
    program.runtime.deadline_s = {spec.tool.name: 0.01}
    program.desk.gate.shut()
    sentence, _ = expect(await program.call(spec.tool), spec, "timeout")
    assert any(word in sentence.lower() for word in ("timeout", "timed out")), "clients match on the text"


async def test_an_unexpected_failure_leaks_nothing(spec):
    program = Program()
    program.desk.failure = RuntimeError(SECRET)
    outcome = await program.call(spec.tool)
    expect(outcome, spec, "unexpected")
    assert not any(word in everything(outcome) for word in ("hunter2", "10.0.0.7", "/home", "RuntimeError"))


async def test_a_caller_who_may_not_is_told_so(spec):
    expect(await Program().call(spec.tool, caller=Caller("eve", frozenset())), spec, "unauthorized")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_failing_source_is_the_specs_code_in_our_words(spec, kind):
    program = Program()
    program.desk.failure = kind("Our own sentence.", source="fake", setting="QUANTDECK_X")
    program.desk.failure.__cause__ = OSError(SECRET)
    outcome = await program.call(spec.tool)
    sentence, details = expect(outcome, spec, kind.__name__)
    assert sentence.endswith("Our own sentence.")
    assert details == {"setting": "QUANTDECK_X"}
    assert not any(word in everything(outcome) for word in ("hunter2", "10.0.0.7", "/home", "OSError"))


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("transport", ["stdio", "rest"])
async def test_the_log_has_the_sentence_that_the_caller_heard_and_no_envelope(spec, transport, modern):
    program = Program()
    program.desk.failure = spec.own
    outcome = await program.call(spec.tool, transport=transport, modern=modern)
    sentence = error_of(outcome)[1]
    assert program.events[0]["error_message"] == sentence
    assert sentence.endswith("No such thing")


async def test_a_failing_source_is_counted(spec):
    program = Program()
    program.desk.failure = Busy("Busy.", source="fake")
    await program.call(spec.tool)
    await program.call(spec.tool)
    assert program.metrics.backends == {"fake": 2}


async def test_every_code_that_can_come_is_one_of_the_tools(spec):
    assert {code for code, _ in spec.codes.values()} <= spec.tool.may_answer


async def test_a_cancelled_call_answers_nothing(spec):
    program = Program()
    program.desk.gate.shut()
    call = program.begin(spec.tool)
    await program.desk.gate.arrived.wait()
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()


def test_what_every_tool_of_a_spec_may_answer_has_what_the_stages_raise(spec):
    dialect = spec.dialect
    raised = {dialect.invalid, dialect.timeout, dialect.unauthorized, dialect.internal, dialect.unavailable}
    raised |= {code for code in (dialect.limited, dialect.conflict) if code}
    assert raised <= set(dialect.common)


def test_no_two_dialects_share_a_name_and_every_published_one_is_there():
    names = [dialect.name for dialect in DIALECTS]
    assert len(set(names)) == len(names)
    assert PUBLISHED.keys() <= set(names)
