"""The Pyth Pro spec: bare results, sentences for models, JSON-RPC errors for what is no proper request."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from quantdeck import listing
from quantdeck.core.errors import Denied, Rejects, Unreachable
from quantdeck.core.wire import RpcFailure
from quantdeck.dialects.pyth import AUTH, INVALID_INPUT, NOT_FOUND, UPSTREAM, pyth
from tests.support.contracts import contract_of
from tests.support.runtime import Desk, Program, body

SPEC = contract_of("pyth")


@pyth.tool(per_minute=1)
async def price(
    desk: Desk,
    ids: Annotated[list[int] | None, Field(description="Feed ids")] = None,
    timestamp: Annotated[float, Field(description="When", gt=0)] = 1,
    channel: Annotated[str, Field(description="Channel", max_length=5), Rejects(INVALID_INPUT)] = "x",
) -> dict[str, Any]:
    """Price."""
    return {"asked": await desk.ask(), "ids": ids, "timestamp": timestamp, "channel": channel}


@pytest.fixture
def program() -> Program:
    made = Program()
    made.runtime.per_minute = {"price": 0}
    return made


async def test_a_success_is_bare(program):
    answer = await program.call(price, {"ids": [1, 2]})
    assert body(answer) == {"asked": 1, "ids": [1, 2], "timestamp": 1.0, "channel": "x"}
    assert answer.text is None


@pytest.mark.parametrize(
    "code, name",
    [(AUTH, "missing_token"), (AUTH, "invalid_token"), (NOT_FOUND, "timestamp_not_found"),
     (INVALID_INPUT, "invalid_channel"), (INVALID_INPUT, "invalid_resolution"), (UPSTREAM, "missing_token")],
)  # fmt: skip
async def test_a_failures_text_is_the_sentence_and_nothing_else(program, code, name):
    sentence = SPEC["errors"][name]
    program.desk.failure = code(sentence, channel="x")
    answer = await program.call(price)
    assert (answer.is_error, answer.text, answer.code) == (True, sentence, code.code)
    assert answer.meta == {"quantdeck/error": {"type": code.code, "channel": "x"}}


async def test_a_timeout_has_the_specs_sentence(program):
    program.runtime.deadline_s = {"price": 0.01}
    program.desk.gate.shut()
    assert (await program.call(price)).text == SPEC["errors"]["timeout"]


@pytest.mark.parametrize("arguments", [{"ids": ["x"]}, {"timestamp": -1}, {"bogus": 1}, {"ids": 7}])
async def test_what_is_no_proper_request_is_a_json_rpc_error(program, arguments):
    outcome = await program.call(price, arguments)
    assert isinstance(outcome, RpcFailure)
    assert (outcome.number, outcome.status) == (-32602, 400)
    assert outcome.message.startswith("Invalid arguments: ")
    assert outcome.data["invalid_arguments"]
    assert program.desk.asked == 0


async def test_a_value_that_is_not_acceptable_is_a_sentence(program):
    answer = await program.call(price, {"channel": "much too long"})
    assert (answer.code, answer.status) == ("invalid_input", 400)
    assert "channel must have at most 5 characters" in answer.text


async def test_numerals_in_strings_are_accepted(program):
    told = body(await program.call(price, {"ids": ["1", 2], "timestamp": "1700000000.5"}))
    assert (told["ids"], told["timestamp"]) == ([1, 2], 1700000000.5)


async def test_a_trial_limit_has_a_kind_of_its_own():
    program = Program()
    await program.call(price)
    refused = await program.call(price)
    assert (refused.code, refused.status) == ("rate_limited", 429)
    assert refused.text.startswith("Rate limit exceeded: 1 calls per minute")


@pytest.mark.parametrize(
    "failure, kind", [(Unreachable("Down.", source="pyth"), "upstream"), (Denied("No.", source="pyth"), "auth")]
)
async def test_upstream_failures_are_sentences_too(program, failure, kind):
    program.desk.failure = failure
    answer = await program.call(price)
    assert (answer.text, answer.code) == (failure.message, kind)


def test_the_hints_are_the_specs():
    assert listing.hints(price).items() >= SPEC["annotations"].items()
    assert listing.hints(price)["openWorldHint"]
