"""get_top_specs, through a client. The ranking itself: tests/sources/test_specs.py."""

from __future__ import annotations

from typing import Any

from tests.support.desk import LATER, add_implementation, add_spec
from tests.support.specs import spec

RULES = {part: spec()[part] for part in ("indicators", "entry_conditions", "exit_conditions", "parameters")}


async def test_answers_the_ranking_in_the_specs_shape(specs):
    own = await add_spec(specs.desk, **RULES)
    await add_implementation(specs.desk, "a", own, forward_sharpe=1.0)
    await add_implementation(specs.desk, "b", own, forward_sharpe=0.5, status="DEPLOYED")
    body = await specs("get_top_specs")
    item = {"spec_id": own, "name": "SMA_RSI", **RULES, "avg_sharpe": 0.75, "implementations_count": 2}
    assert body["data"] == {
        "items": [item],
        "pagination": {"offset": 0, "limit": 10, "total": 1, "has_more": False},
    }
    assert body["_metadata"]["source"] == specs.desk.source


async def test_a_spec_that_nobody_ran_forward_has_no_average(specs):
    await add_implementation(specs.desk, "a", await add_spec(specs.desk), backtest_sharpe=3.0)
    (item,) = (await specs("get_top_specs"))["data"]["items"]
    assert (item["avg_sharpe"], item["implementations_count"]) == (None, 1)


async def test_no_spec_is_an_empty_list_and_no_error(specs):
    pagination = {"offset": 3, "limit": 2, "total": 0, "has_more": False}
    assert (await specs("get_top_specs", limit=2, offset=3))["data"] == {"items": [], "pagination": pagination}


async def test_canonical_is_also_what_was_migrated(specs):
    for source in ("CANONICAL", "MIGRATED", "LLM_GENERATED", "USER_CREATED"):
        await add_spec(specs.desk, source, source=source)

    async def named(source):
        return {item["name"] for item in (await specs("get_top_specs", source=source))["data"]["items"]}

    assert await named("CANONICAL") == {"CANONICAL", "MIGRATED"}
    assert await named("LLM_GENERATED") == {"LLM_GENERATED"}
    assert len(await named("ALL")) == 4


async def test_pages_by_ten_unless_told_and_cuts_a_limit_to_the_cap(specs):
    for number in range(12):
        await add_spec(specs.desk, f"S{number:02}")
    first = (await specs("get_top_specs"))["data"]
    rest = (await specs("get_top_specs", offset=10, limit=101))["data"]
    assert [item["name"] for item in first["items"] + rest["items"]] == [f"S{number:02}" for number in range(12)]
    assert first["pagination"] == {"offset": 0, "limit": 10, "total": 12, "has_more": True}
    assert rest["pagination"] == {"offset": 10, "limit": 100, "total": 12, "has_more": False}


async def test_a_second_call_comes_from_the_cache_unless_refreshed(specs):
    await add_spec(specs.desk)
    assert not (await specs("get_top_specs"))["_metadata"]["cached"]
    again = (await specs("get_top_specs"))["_metadata"]
    assert again["cached"]
    assert 0 < again["cache_ttl_remaining"] <= 60
    assert not (await specs("get_top_specs", force_refresh=True))["_metadata"]["cached"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"source": "canonical"}, "INVALID_SOURCE"),
    ({"source": "USER_CREATED"}, "INVALID_SOURCE"),
    ({"source": ""}, "INVALID_SOURCE"),
    ({"source": 7}, "INVALID_SOURCE"),
    ({"limit": 0}, "INVALID_PARAMETER"),
    ({"limit": True}, "INVALID_PARAMETER"),
    ({"offset": -1}, "INVALID_PARAMETER"),
    ({"min_sharpe": 1.5}, "INVALID_PARAMETER"),
]


async def test_fails_with_a_declared_code(specs):
    for arguments, code in REFUSED:
        assert (await specs.refused("get_top_specs", **arguments))[0] == code, arguments


async def test_a_table_that_is_gone_is_a_database_error(specs):
    await specs.desk.execute("ALTER TABLE strategy_specs RENAME TO gone")
    code, message = await specs.refused("get_top_specs")
    assert (code, "quantdeck migrate" in message, "strategy_specs" in message) == ("DATABASE_ERROR", True, False)


async def test_a_ranking_changed_after_the_fixed_clock_is_refused(specs):
    await add_spec(specs.desk, updated_at=LATER)
    code, message = await specs.refused("get_top_specs")
    assert (code, "after the fixed clock" in message) == ("NOT_FOUND", True)


async def test_a_spec_of_after_the_clock_is_invisible(specs):
    await add_spec(specs.desk, created_at=LATER, updated_at=LATER)
    assert (await specs("get_top_specs"))["data"]["pagination"]["total"] == 0
