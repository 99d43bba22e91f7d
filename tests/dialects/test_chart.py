"""The chart spec: bare results, and failures numbered from -32001, as JSON-RPC errors or as results."""

from __future__ import annotations

from typing import Any

import pytest

from quantdeck.core.errors import Unreachable
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects import chart as module
from quantdeck.dialects.chart import INSUFFICIENT_DATA, INVALID_SYMBOL, INVALID_TIMEFRAME, UNAVAILABLE, chart
from tests.support.contracts import contract_of
from tests.support.runtime import Desk, Program, body

SPEC = contract_of("chart_signals")
CODES = (INSUFFICIENT_DATA, INVALID_SYMBOL, INVALID_TIMEFRAME, UNAVAILABLE)


@chart.tool(errors=CODES)
async def look(desk: Desk) -> dict[str, Any]:
    """Look."""
    return {"asked": await desk.ask()}


def failing(code: Any = INVALID_SYMBOL, **options: Any) -> Program:
    program = Program(options=options)
    program.desk.failure = code("'ZZZ' is not one we know", symbol="ZZZ")
    return program


def test_codes_and_words_are_the_tables():
    table = {code: words for code, words in SPEC["error_codes"].items() if code != "-32601"}
    assert {code.code: code.description for code in CODES} == table


async def test_a_success_is_bare():
    assert body(await Program().call(look)) == {"asked": 1}


@pytest.mark.parametrize("options", [{}, {"chart_errors": "rpc"}, {"chart_errors": "strict"}])
@pytest.mark.parametrize("code", CODES)
async def test_on_legacy_connections_a_failure_is_a_json_rpc_error(options, code):
    outcome = await failing(code, **options).call(look)
    assert outcome == RpcFailure(
        int(code.code), f"{code.description}: 'ZZZ' is not one we know", {"symbol": "ZZZ"}, code.status, code.code
    )
    assert outcome.message.startswith(SPEC["error_codes"][code.code]), "the spec's words come first"


@pytest.mark.parametrize(
    "modern, options",
    [
        (True, {}),
        (True, {"chart_errors": "rpc"}),
        (True, {"chart_errors": "strict"}),
        (False, {"chart_errors": "result"}),
    ],
)
async def test_elsewhere_it_is_a_result_with_the_same_code_message_and_data(modern, options):
    outcome = await failing(**options).call(look, modern=modern)
    assert isinstance(outcome, Answer)
    assert (outcome.is_error, outcome.code) == (True, "-32002")
    assert body(outcome) == {
        "code": -32002,
        "message": "Invalid symbol: 'ZZZ' is not one we know",
        "data": {"symbol": "ZZZ"},
    }


async def test_the_specs_own_example_comes_out():
    program = failing(INSUFFICIENT_DATA, chart_errors="strict")
    program.desk.failure = INSUFFICIENT_DATA("…", **SPEC["error_data_example"]["data"])
    outcome = await program.call(look)
    example = SPEC["error_data_example"]
    assert (outcome.number, outcome.data) == (example["code"], example["data"])
    assert outcome.message.startswith(example["message"])


async def test_a_feed_that_does_not_answer_is_market_data_unavailable():
    program = Program()
    program.desk.failure = Unreachable("The feed does not answer.", source="alpaca")
    outcome = await program.call(look)
    assert (outcome.number, outcome.message) == (-32004, "Market data unavailable: The feed does not answer.")


def test_every_code_is_a_number_of_json_rpc():
    for code in chart.common:
        assert -32768 <= int(code.code) <= -32000
    assert module.INVALID_PARAMS in chart.common
