"""storage.shared_state.get and .set: any JSON, by REST and by MCP, up to its size, quota and time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.settings import SharedState
from tests.support.contracts import contract_of
from tests.support.desk import NOON
from tests.support.over_http import PLAIN, Served

SET, GET = "storage.shared_state.set", "storage.shared_state.get"
PLACE = {"corr_id": "req_abc123", "key": "analysis.momentum"}
LARGEST = 1_048_576


async def put(server: Served, value: Any, **said: Any) -> Any:
    return await server.rest(SET, arguments={**PLACE, "value": value, **said})


async def got(server: Served, **said: Any) -> Any:
    answer = await server.rest(GET, arguments={**PLACE, **said})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_the_specs_curl_lines_store_a_value_and_find_it(server):
    examples = [tool["examples"] for tool in contract_of("catalog")["tools"] if tool["name"] == SET]
    store, retrieve = examples[0]
    stored = await server.http.post("/mcp/tools/call", json=store)
    assert (stored.status_code, stored.json()["error"], stored.json()["tool"]) == (200, False, SET)
    data = stored.json()["data"]
    assert (data["stored"], data["size_bytes"]) == (True, 63)
    assert data["size_bytes"] == len(orjson.dumps(store["arguments"]["value"]))
    found = (await server.http.post("/mcp/tools/call", json=retrieve)).json()["data"]
    assert (found["exists"], found["value"]) == (True, store["arguments"]["value"])
    metadata = found["metadata"]
    assert (metadata["ttl_seconds"], metadata["access_count"]) == (600, 1)
    assert metadata["created_at"] == metadata["updated_at"]
    expires_at = datetime.fromisoformat(metadata["updated_at"]) + timedelta(seconds=600)
    assert datetime.fromisoformat(data["expires_at"]) == expires_at


async def test_a_key_that_is_not_there_is_no_error(server):
    assert await got(server) == {"exists": False}


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_over_mcp_it_is_listed_with_underscores_and_called_by_either_name(server, era):
    async with server.client(era) as client:
        tools = (await client.list_tools()).tools
        assert {"storage_shared_state_get", "storage_shared_state_set"} <= {tool.name for tool in tools}
        assert not [tool.name for tool in tools if "." in tool.name]
        for spelling in ("storage_shared_state_set", SET):
            said = await client.call_tool(spelling, {**PLACE, "value": {"by": spelling}})
            assert said.structured_content["stored"] is True
        for count, spelling in enumerate(("storage_shared_state_get", GET), 1):
            found = await client.call_tool(spelling, PLACE)
            assert found.structured_content["value"] == {"by": SET}
            assert found.structured_content["metadata"]["access_count"] == count
            assert orjson.loads(found.content[0].text) == found.structured_content
            assert found.meta["quantdeck/source"] == (
                "redis" if "redis" in server.app.runtime.coordination.__module__ else "sqlite"
            )


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, -0.0, 1e308, 2**64 - 1, -(2**63), "\u0000é😀", [None]])
async def test_every_kind_of_json_comes_back_as_it_was(server, value):
    assert (await put(server, value)).status_code == 200
    found = await got(server)
    assert (found["exists"], found["value"], type(found["value"])) == (True, value, type(value))


texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=json_values)
async def test_whatever_json_can_say_comes_back(server, value):
    server.app.runtime.per_minute = {SET: 0, GET: 0}
    assert (await put(server, value)).json()["data"]["size_bytes"] == len(orjson.dumps(value))
    assert (await got(server))["value"] == value


async def test_a_value_of_exactly_a_megabyte_is_stored_and_one_byte_more_is_not(server):
    stored = await put(server, "x" * (LARGEST - 2))
    assert stored.json()["data"]["size_bytes"] == LARGEST
    refused = await put(server, "x" * (LARGEST - 1))
    assert (refused.status_code, refused.json()["code"]) == (400, "MCP-001")
    assert "1048577 bytes" in refused.json()["message"]
    assert refused.json()["details"] == {"size_bytes": LARGEST + 1, "max_bytes": LARGEST}
    assert (await got(server))["value"] == "x" * (LARGEST - 2)


async def test_it_is_bytes_of_utf_8_that_count_not_characters(server):
    assert (await put(server, "é" * (LARGEST // 2 - 1))).json()["data"]["size_bytes"] == LARGEST
    assert (await put(server, "é" * (LARGEST // 2))).status_code == 400


@pytest.mark.parametrize("depth, status", [(190, 200), (5000, 400), (500, 400), (260, 400)])
async def test_deep_nesting_is_stored_or_refused_never_a_failure(server, depth, status):
    value = "[" * depth + "]" * depth
    body = f'{{"name":"{SET}","arguments":{{"corr_id":"c","key":"k","value":{value}}}}}'
    answer = await server.http.post("/mcp/tools/call", content=body, headers=PLAIN)
    assert answer.status_code == status
    if status == 200:
        for era in ("legacy", "auto"):
            async with server.client(era) as client:
                found = await client.call_tool(GET, {"corr_id": "c", "key": "k"})
                assert orjson.dumps(found.structured_content["value"]).decode() == value
    else:
        assert answer.json()["code"] == "MCP-001"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
async def test_what_is_no_json_number_is_refused(server, number):
    body = f'{{"name":"{SET}","arguments":{{"corr_id":"c","key":"k","value":{number}}}}}'
    answer = await server.http.post("/mcp/tools/call", content=body, headers=PLAIN)
    assert (answer.status_code, answer.json()["code"]) == (400, "MCP-001")


@pytest.mark.parametrize(
    "wrong, word",
    [
        ({"corr_id": ""}, "corr_id"),
        ({"corr_id": "a.b"}, "corr_id"),
        ({"corr_id": "a\n"}, "corr_id"),
        ({"corr_id": "a" * 129}, "128"),
        ({"corr_id": "{a}"}, "corr_id"),
        ({"key": ""}, "key"),
        ({"key": "a/b"}, "key"),
        ({"key": "a\n"}, "key"),
        ({"key": "k" * 257}, "256"),
        ({"key": None}, "key"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"ttl_seconds": 86_401}, "86400"),
        ({"ttl_seconds": 1.5}, "ttl_seconds"),
        ({"ttl_seconds": "60"}, "ttl_seconds"),
        ({"ttl_seconds": True}, "ttl_seconds"),
        ({"more": 1}, "more"),
    ],
)
async def test_arguments_outside_the_schema_are_mcp_001(server, wrong, word):
    answer = await put(server, 1, **wrong)
    assert (answer.status_code, answer.json()["code"]) == (400, "MCP-001")
    assert answer.json()["message"].startswith("Invalid arguments: ")
    assert word in answer.json()["message"]


@pytest.mark.parametrize("missing", ["corr_id", "key", "value"])
async def test_every_argument_but_the_time_is_required(server, missing):
    arguments = {name: said for name, said in {**PLACE, "value": 1}.items() if name != missing}
    answer = await server.rest(SET, arguments=arguments)
    assert answer.json()["details"]["invalid_arguments"] == [
        {"argument": missing, "rule": "required", "problem": "is required"}
    ]


async def test_names_of_full_length_and_a_second_or_a_day_are_taken(server):
    place = {"corr_id": "a" * 128, "key": "k" * 256}
    for ttl_s in (1, 86_400):
        assert (await put(server, 1, **place, ttl_seconds=ttl_s)).status_code == 200
    assert (await got(server, **place))["metadata"]["ttl_seconds"] == 86_400
    await put(server, 1, **place)
    assert (await got(server, **place))["metadata"]["ttl_seconds"] == 300


async def test_a_full_scope_is_mcp_014_and_another_is_not(serving, kept):
    async with serving(**kept, shared_state=SharedState(quota_mb=0.001, quota_keys=3)) as server:
        assert (await put(server, "x" * 1000, key="a")).status_code == 200
        full = await put(server, "x" * 100, key="b")
        assert (full.status_code, full.json()["code"], full.json()["message"][:22]) == (
            507,
            "MCP-014",
            "Storage quota exceeded",
        )
        assert full.json()["details"] == {"quota": "bytes", "used": 1002, "max": 1048}
        for key in "ab":
            await put(server, 1, key=key, corr_id="other")
        await put(server, 1, key="c", corr_id="other")
        many = await put(server, 1, key="d", corr_id="other")
        assert many.json()["details"] == {"quota": "keys", "used": 3, "max": 3}


async def test_values_survive_a_restart(serving, kept):
    async with serving(**kept) as server:
        await put(server, {"a": 1})
    async with serving(**kept) as server:
        assert (await got(server))["value"] == {"a": 1}


async def test_at_a_fixed_clock_what_is_left_there_is_found_there(serving, kept):
    async with serving(**kept, clock=NOON.isoformat()) as server:
        stored = (await put(server, 1, ttl_seconds=60)).json()
        assert stored["data"]["expires_at"] == (NOON + timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
        assert (await got(server))["metadata"]["created_at"] == NOON.isoformat().replace("+00:00", "Z")
    async with serving(**kept, clock=(NOON - timedelta(days=1)).isoformat()) as server:
        assert await got(server) == {"exists": False}


async def test_what_was_overwritten_since_is_a_coded_error_and_not_shown(serving, kept):
    async with serving(**kept, clock=NOON.isoformat()) as server:
        await put(server, "then")
    async with serving(**kept) as server:
        await put(server, "now")
    async with serving(**kept, clock=NOON.isoformat()) as server:
        refused = await server.rest(GET, arguments=PLACE)
        assert (refused.status_code, refused.json()["code"]) == (503, "MCP-003")
        assert "now" not in refused.text.replace("known", "")
