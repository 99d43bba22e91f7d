"""submit_new_spec, through a client. What is right and wrong in a spec: tests/domain/test_spec_reader.py."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from tests.support.desk import LATER, NOON, add_spec, uid
from tests.support.specs import CONDITION_TYPES, INDICATOR_TYPES, spec

PATIENCE_S = 20


async def problems(specs, **said):
    """The code of the whole, and path and code of each problem."""
    error = (await specs("submit_new_spec", **spec(**said)))["error"]
    told = error["details"]["validation_errors"]
    assert all(one.keys() == {"path", "code", "message"} for one in told)
    assert error["details"]["created"] is False
    assert all(one["path"] in error["message"] for one in told[:5])
    return error["code"], [(one["path"], one["code"]) for one in told]


async def rows(specs):
    return await specs.desk.rows("SELECT * FROM strategy_specs ORDER BY name")


async def test_a_right_spec_is_created_and_found(specs):
    body = await specs("submit_new_spec", **spec(name="ema_pullback", description=" what ", reasoning="why"))
    made = body["data"]["spec_id"]
    assert body["data"] == {"spec_id": made, "created": True, "validation_errors": [], "warnings": []}
    metadata = body["_metadata"]
    assert (metadata["cached"], metadata["cache_ttl_remaining"], metadata["source"]) == (False, None, specs.desk.source)
    (row,) = await rows(specs)
    assert (row["spec_id"], row["name"], row["source"]) == (made, "EMA_PULLBACK", "LLM_GENERATED")
    assert (row["description"], row["reasoning"]) == ("what", "why")
    assert (row["created_at"], row["updated_at"]) == (NOON, NOON)
    (item,) = (await specs("get_top_specs"))["data"]["items"]
    assert (item["spec_id"], item["avg_sharpe"], item["implementations_count"]) == (made, None, 0)
    assert (await specs("get_implementations", spec_id=made))["data"]["items"] == []


async def test_canonical_keys_are_stored_whatever_was_said(specs):
    said = spec(
        indicators=[{"output_name": "sma", "type": "sma", "period": "${period}"}],
        entry_conditions=[{"type": "over", "indicator": "close", "other": "sma"}],
        exit_conditions=[{"type": "Stop_Loss", "params": {"percentage": "2.5"}}],
        parameters=[{"name": "period", "type": "INT", "min": 10, "max": 50, "default": 20}],
    )
    assert (await specs("submit_new_spec", **said))["data"]["created"]
    (row,) = await rows(specs)
    assert row["indicators"] == [{"id": "sma", "type": "SMA", "input": "close", "params": {"period": "${period}"}}]
    assert row["entry_conditions"] == [{"type": "OVER", "indicator": "close", "params": {"other": "sma"}}]
    assert row["exit_conditions"] == [{"type": "STOP_LOSS", "params": {"percentage": 2.5}}]
    assert row["parameters"] == [{"name": "period", "type": "INTEGER", "min": 10, "max": 50, "defaultValue": 20}]


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "1x"}, "INVALID_NAME", "name"),
    ({"name": None}, "INVALID_NAME", "name"),
    ({"name": 7}, "INVALID_NAME", "name"),
    ({"indicators": "[]"}, "SCHEMA_VALIDATION_ERROR", "indicators"),
    ({"exit_conditions": []}, "SCHEMA_VALIDATION_ERROR", "exit_conditions"),
    ({"reasoning": "x" * 10_001}, "SCHEMA_VALIDATION_ERROR", "reasoning"),
    ({"reasoning": "a\0b"}, "SCHEMA_VALIDATION_ERROR", "reasoning"),
    ({"description": ["x"]}, "SCHEMA_VALIDATION_ERROR", "description"),
    ({"indicators": [*spec()["indicators"], {"id": "x", "type": "X"}]}, "INVALID_INDICATORS", "indicators[2].type"),
    ({"exit_conditions": [{"type": "OR"}]}, "INVALID_CONDITIONS", "exit_conditions[0].type"),
    ({"parameters": [*spec()["parameters"], 7]}, "SCHEMA_VALIDATION_ERROR", "parameters[2]"),
]


async def test_fails_with_the_code_of_what_is_wrong(specs):
    for said, code, path in WRONG:
        assert await problems(specs, **said) == (code, [(path, code)]), said
    assert await rows(specs) == []


async def test_the_first_kind_of_problem_names_the_whole_and_all_are_told(specs):
    wrong = {
        "parameters": [*spec()["parameters"], {"name": "x", "type": "?", "min": 1, "max": 2, "defaultValue": 1}],
        "exit_conditions": [{"type": "AND"}],
        "indicators": [*spec()["indicators"], {"id": "x", "type": "?"}],
        "description": 7,
        "name": "?",
    }
    codes = {
        "name": "INVALID_NAME", "description": "SCHEMA_VALIDATION_ERROR", "indicators[2].type": "INVALID_INDICATORS",
        "exit_conditions[0].type": "INVALID_CONDITIONS", "parameters[2].type": "SCHEMA_VALIDATION_ERROR",
    }  # fmt: skip
    for last in list(codes):
        code, told = await problems(specs, **wrong)
        assert (code, dict(told)) == (codes[last], codes)
        del codes[last]
        del wrong[last.split("[")[0]]


async def test_what_is_missing_is_told_with_all_else(specs):
    error = (await specs("submit_new_spec", name="NEW", entry_conditions=[{"type": "OR"}]))["error"]
    assert error["code"] == "SCHEMA_VALIDATION_ERROR"
    told = {one["path"] for one in error["details"]["validation_errors"]}
    assert told == {"indicators", "exit_conditions", "parameters", "entry_conditions[0].type"}


async def test_a_name_that_is_taken_is_told_with_all_else(specs):
    await add_spec(specs.desk)
    code, told = await problems(specs, exit_conditions=[])
    assert (code, told) == (
        "SCHEMA_VALIDATION_ERROR", [("exit_conditions", "SCHEMA_VALIDATION_ERROR"), ("name", "DUPLICATE_NAME")],
    )  # fmt: skip


async def test_what_is_wrong_is_told_also_where_no_database_is(specs):
    await specs.desk.execute("ALTER TABLE strategy_specs RENAME TO gone")
    assert await problems(specs, exit_conditions=[]) == (
        "SCHEMA_VALIDATION_ERROR", [("exit_conditions", "SCHEMA_VALIDATION_ERROR")],
    )  # fmt: skip
    assert (await specs.refused("submit_new_spec", **spec()))[0] == "DATABASE_ERROR"


async def test_a_duplicate_is_refused_with_the_id_that_has_the_name(specs):
    made = (await specs("submit_new_spec", **spec()))["data"]["spec_id"]
    error = (await specs("submit_new_spec", **spec(name=" sma_rsi ", description="another")))["error"]
    assert error["code"] == "DUPLICATE_NAME"
    assert error["details"] == {"name": "SMA_RSI", "spec_id": made, "created": False}
    assert len(await rows(specs)) == 1


async def test_the_id_of_a_spec_of_after_the_clock_is_not_told(specs):
    await add_spec(specs.desk, created_at=LATER, updated_at=LATER)
    body = await specs("submit_new_spec", **spec())
    assert (body["error"]["code"], body["error"]["details"]["spec_id"]) == ("DUPLICATE_NAME", None)
    assert uid("SMA_RSI") not in orjson.dumps(body).decode()


async def test_a_twin_and_what_is_unwise_are_warnings(specs):
    await specs("submit_new_spec", **spec())
    body = await specs("submit_new_spec", **spec(name="TWIN", description="x" * 501))
    assert body["data"]["created"]
    twin, *_ = [warning for warning in body["data"]["warnings"] if "SMA_RSI" in warning]
    assert "same types in the same order" in twin
    assert any("501 characters" in warning for warning in body["data"]["warnings"])


async def test_an_argument_that_there_is_not_is_refused(specs):
    assert (await specs.refused("submit_new_spec", **spec(), source="CANONICAL"))[0] == "INVALID_PARAMETER"


async def test_of_fifty_at_once_one_is_created(specs):
    bodies = await asyncio.gather(*(specs("submit_new_spec", **spec(description=f"{n}")) for n in range(50)))
    (made,) = [body["data"]["spec_id"] for body in bodies if "data" in body]
    refused = [body["error"] for body in bodies if "error" in body]
    assert {(error["code"], error["details"]["spec_id"]) for error in refused} == {("DUPLICATE_NAME", made)}
    assert len(refused) == 49


async def test_a_repeated_key_answers_the_same_and_creates_nothing(specs):
    async def submitted(key, **said):
        meta = {"quantdeck/idempotency_key": key}
        result = await specs.client.call_tool("submit_new_spec", spec(**said), meta=meta)
        return orjson.loads(result.content[0].text)

    made = (await submitted("k"))["data"]
    assert made["created"]
    assert (await submitted("k"))["data"] == made
    assert (await submitted("k", description="another"))["error"]["code"] == "INVALID_PARAMETER"
    assert (await submitted("l"))["error"]["code"] == "DUPLICATE_NAME"
    assert (await submitted("l", name="ANOTHER"))["data"]["created"], "a refusal leaves its key free"
    assert [row["name"] for row in await rows(specs)] == ["ANOTHER", "SMA_RSI"]


async def test_our_own_submission_is_in_the_next_ranking(specs):
    assert (await specs("get_top_specs"))["data"]["items"] == []
    await specs("submit_new_spec", **spec())
    body = await specs("get_top_specs")
    assert (len(body["data"]["items"]), body["_metadata"]["cached"]) == (1, False)


async def test_anothers_submission_is_seen_long_before_the_answer_has_run_out(serve, database, specs):
    other = await serve("strategy-db-mcp", **database)
    assert (await specs("get_top_specs"))["data"]["items"] == []
    made = (await other("submit_new_spec", **spec()))["data"]["spec_id"]
    async with asyncio.timeout(PATIENCE_S):
        while not (body := await specs("get_top_specs"))["data"]["items"]:
            assert body["_metadata"]["cached"]
            await asyncio.sleep(0.02)
    assert [item["spec_id"] for item in body["data"]["items"]] == [made]


async def test_a_model_is_told_every_type_that_there_is(specs):
    listed = {tool.name: tool for tool in (await specs.client.list_tools()).tools}["submit_new_spec"]
    told = {name: one["description"] for name, one in listed.input_schema["properties"].items()}
    assert set(INDICATOR_TYPES) <= set(told["indicators"].replace(";", " ").split())
    words = set(told["entry_conditions"].replace(";", " ").split())
    assert words >= {name for name in CONDITION_TYPES if "STOP" not in name}
    assert {"STOP_GAIN", "STOP_LOSS", "TRAILING_STOP_LOSS"} <= set(told["exit_conditions"].split())
