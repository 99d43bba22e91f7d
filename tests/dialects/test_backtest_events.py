"""The event-log spec: camelCase, bare results, `{error: {code, message, details}}`."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from quantdeck import listing
from quantdeck.core.errors import ErrorCode
from quantdeck.dialects import backtest_events as module
from quantdeck.dialects.backtest_events import RUN_NOT_FOUND, backtest_events
from tests.support.contracts import contract_of
from tests.support.runtime import Desk, Program, body

SPEC = contract_of("backtest_events")


@backtest_events.tool(errors=(RUN_NOT_FOUND,))
async def events(
    desk: Desk,
    run_id: Annotated[str, Field(description="The run")],
    page_size: Annotated[int, Field(description="How many", ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Events."""
    return {"asked": await desk.ask(), "runId": run_id, "pageSize": page_size}


def test_every_code_of_the_table_is_there_with_its_words_and_status():
    ours = {value.code: value for value in vars(module).values() if isinstance(value, ErrorCode)}
    for code, row in SPEC["error_codes"].items():
        assert (ours[code].description, ours[code].status) == (row["description"], row["http"])


async def test_a_success_is_bare():
    assert body(await Program().call(events, {"runId": "r"})) == {"asked": 1, "runId": "r", "pageSize": 100}


async def test_a_failure_is_the_specs_envelope():
    program = Program()
    program.desk.failure = RUN_NOT_FOUND("No run 'r'", runId="r")
    answer = await program.call(events, {"runId": "r"})
    assert body(answer) == {"error": {"code": "RUN_NOT_FOUND", "message": "No run 'r'", "details": {"runId": "r"}}}
    assert (answer.is_error, answer.status) == (True, 404)
    assert body(answer)["error"].keys() == SPEC["error_envelope"]["error"].keys()


async def test_details_are_null_where_there_are_none():
    program = Program()
    program.desk.failure = RUN_NOT_FOUND("No such run")
    assert body(await program.call(events, {"runId": "r"}))["error"]["details"] is None


@pytest.mark.parametrize("arguments", [{}, {"run_id": "r"}, {"runid": "r"}, {"runId": "r", "page_size": 1}])
async def test_only_camel_case_is_understood(arguments):
    assert (await Program().call(events, arguments)).code == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    "name, spelled",
    [("run_id", "runId"), ("property_path", "propertyPath"), ("include_active_orders", "includeActiveOrders"),
     ("find", "find"), ("from_", "from")],
)  # fmt: skip
def test_names_are_spelled_as_the_spec_does(name, spelled):
    assert backtest_events.spell(name) == spelled


async def test_a_refusal_names_the_argument_as_the_caller_wrote_it():
    details = body(await Program().call(events, {"runId": "r", "pageSize": 0}))["error"]["details"]
    assert details["invalid_arguments"][0]["argument"] == "pageSize"


def test_a_query_has_the_specs_ten_seconds():
    assert events.policy.deadline_s == SPEC["targets"]["query_timeout_s"]


def test_its_tools_only_read():
    assert listing.hints(events)["readOnlyHint"]
