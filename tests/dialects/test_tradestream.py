"""The first spec: `{data, _metadata}`, worded codes, paging."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from quantdeck.core.errors import Busy, Denied, Unreachable
from quantdeck.dialects.tradestream import INVALID_SYMBOL, UNAUTHORIZED, Clamp, Offset, Page, Symbol, tradestream
from tests.support.contracts import contract_of
from tests.support.runtime import Desk, Program, body

SPEC = contract_of("tradestream")


@tradestream.tool(errors=(INVALID_SYMBOL,), cache_s=30)
async def names(
    desk: Desk,
    symbol: Symbol,
    limit: Annotated[int, Clamp(1, 100), Field(description="How many")] = 5,
    offset: Offset = 0,
) -> Page[str]:
    """Names."""
    await desk.ask()
    found = [f"{symbol} {number}" for number in range(250)]
    return Page.of(found[offset : offset + limit], offset, limit, len(found))


async def test_a_success_is_the_specs_envelope():
    answer = body(await Program().call(names, {"symbol": "ETH/USD", "limit": 1}))
    latency_ms = answer["_metadata"].pop("latency_ms")
    assert latency_ms >= 0
    assert answer == {
        "data": {
            "items": ["ETH/USD 0"],
            "pagination": {"offset": 0, "limit": 1, "total": 250, "has_more": True},
        },
        "_metadata": {"cached": False, "cache_ttl_remaining": None, "source": "fake"},
    }


async def test_the_envelopes_have_the_keys_of_the_contract_and_no_others():
    program = Program()
    good = body(await program.call(names, {"symbol": "ETH/USD"}))
    bad = body(await program.call(names, {"symbol": "?"}))
    assert good.keys() == SPEC["envelope_ok"].keys()
    assert good["_metadata"].keys() == SPEC["envelope_ok"]["_metadata"].keys()
    assert bad.keys() == SPEC["envelope_error"].keys()
    assert bad["error"].keys() == SPEC["envelope_error"]["error"].keys()
    assert bad["_metadata"].keys() == SPEC["envelope_error"]["_metadata"].keys()


async def test_details_are_an_object_also_where_there_are_none():
    program = Program()
    program.desk.failure = Busy("Busy.", source="fake")
    assert body(await program.call(names, {"symbol": "ETH/USD"}))["error"]["details"] == {}


def test_the_output_schema_is_that_of_the_whole_envelope():
    schema = names.output_schema
    assert schema["required"] == ["data", "_metadata"]
    metadata = schema["properties"]["_metadata"]
    assert metadata["required"] == list(SPEC["envelope_ok"]["_metadata"])
    assert metadata["properties"]["cache_ttl_remaining"] == {"type": ["number", "null"]}


def test_the_standard_codes_have_the_statuses_of_the_table():
    assert {code.code: code.status for code in tradestream.common} == SPEC["standard_errors"]


def test_a_bad_symbol_has_the_words_of_the_table():
    described = {error["code"]: error["description"] for error in SPEC["tools"][0]["errors"]}
    assert described["INVALID_SYMBOL"] == INVALID_SYMBOL.description


@pytest.mark.parametrize(
    "failure, code",
    [
        (Unreachable("Down.", source="grpc"), "GRPC_ERROR"),
        (Busy("Busy.", source="grpc"), "GRPC_ERROR"),
        (Denied("No.", source="grpc"), "DATABASE_ERROR"),
        (Unreachable("Down.", source="influxdb"), "DATABASE_ERROR"),
    ],
)
async def test_a_failing_grpc_service_has_a_code_of_its_own(failure, code):
    program = Program()
    program.desk.failure = failure
    assert (await program.call(names, {"symbol": "ETH/USD"})).code == code


async def test_a_database_that_lets_us_not_in_is_the_callers_affair_only_where_the_tool_says_so():
    @tradestream.tool(errors=(UNAUTHORIZED,))
    async def holdings(desk: Desk) -> dict[str, Any]:
        """Holdings."""
        return {"asked": await desk.ask()}

    program = Program()
    program.desk.failure = Denied("No.", source="postgresql")
    assert (await program.call(holdings)).code == "UNAUTHORIZED"
    assert (await program.call(names, {"symbol": "ETH/USD"})).code == "DATABASE_ERROR"


async def test_an_effect_that_was_too_late_says_that_its_outcome_is_unknown():
    @tradestream.tool(errors=(), effect=True)
    async def save(desk: Desk) -> dict[str, Any]:
        """Save."""
        return {"asked": await desk.ask()}

    program = Program()
    program.runtime.deadline_s = {"save": 0.01}
    program.desk.gate.shut()
    error = body(await program.call(save))["error"]
    assert (error["code"], error["details"]["outcome"]) == ("TIMEOUT", "unknown")
    program.desk.gate.open()
    await program.runtime.tasks.finish(30)


async def test_a_bad_symbol_is_answered_as_it_was_written_and_as_it_was_read():
    error = body(await Program().call(names, {"symbol": "btc"}))["error"]
    assert error["code"] == "INVALID_SYMBOL"
    assert "symbol is not a trading pair such as BTC/USD" in error["message"]
    assert error["details"].items() >= {"symbol": "btc", "normalized": "BTC"}.items()


async def test_a_bad_symbol_is_not_repeated_at_length():
    assert len((await Program().call(names, {"symbol": "x" * 100_000})).encoded) < 1000


@given(limit=st.integers(1, 400), offset=st.integers(0, 400))
async def test_pages_say_where_they_stand_in_the_whole(limit, offset):
    arguments = {"symbol": "ETH/USD", "limit": limit, "offset": offset}
    page = body(await Program().call(names, arguments))["data"]
    used = min(limit, 100)
    assert page["pagination"] == {
        "offset": offset, "limit": used, "total": 250, "has_more": offset + len(page["items"]) < 250,
    }  # fmt: skip
    assert len(page["items"]) == max(0, min(used, 250 - offset))


async def test_following_has_more_reads_everything_once():
    program, seen, offset = Program(), [], 0
    while True:
        page = body(await program.call(names, {"symbol": "ETH/USD", "limit": 60, "offset": offset}))["data"]
        seen += page["items"]
        offset += len(page["items"])
        if not page["pagination"]["has_more"]:
            break
    assert seen == [f"ETH/USD {number}" for number in range(250)]
