"""The catalog's pipeline around its own tools: limits, keys, correlation, health, metrics, the audit event."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest

from quantdeck.core.wire import digest
from quantdeck.servers import load
from tests.support.over_http import PLAIN, Served

SET, GET = "storage.shared_state.set", "storage.shared_state.get"
PLACE = {"corr_id": "c", "key": "k"}
ADDRESS = digest("127.0.0.1")[:8]
"""As the log and the metrics have it, where it is all that is known of a caller."""


async def put(server: Served, value: Any, key: str | None = None, **said: Any) -> Any:
    metadata = {} if key is None else {"metadata": {"idempotency_key": key}}
    return await server.rest(SET, arguments={**PLACE, "value": value}, **metadata, **said)


async def value(server: Served) -> Any:
    return (await server.rest(GET, arguments=PLACE)).json()["data"]["value"]


# limits


@pytest.mark.parametrize("tool, most", [(GET, 1000), (SET, 500)])
async def test_of_calls_in_a_minute_the_one_beyond_the_limit_is_refused(server, tool, most):
    arguments = {**PLACE, "value": 1} if tool == SET else PLACE
    calls = [server.rest(tool, arguments=arguments) for _ in range(most + 1)]
    answers = [
        answer for first in range(0, most + 1, 50) for answer in await asyncio.gather(*calls[first : first + 50])
    ]
    assert Counter(answer.status_code for answer in answers) == {200: most, 429: 1}
    (refused,) = (answer for answer in answers if answer.status_code == 429)
    assert (refused.json()["code"], refused.headers["x-ratelimit-limit"]) == ("MCP-006", str(most))
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert 0 < int(refused.headers["x-ratelimit-reset"]) == int(refused.headers["retry-after"]) <= 60
    assert refused.json()["details"]["retry_after_s"] == int(refused.headers["retry-after"])
    other = GET if tool == SET else SET
    assert (await server.rest(other, arguments={**PLACE, **({"value": 1} if other == SET else {})})).status_code == 200


async def test_every_answer_says_how_the_window_stands(serving, kept):
    async with serving(**kept, per_minute={SET: 3}) as server:
        answers = [await put(server, 1) for _ in range(3)]
        answers.append(await server.rest(SET, arguments={}))
        assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
        assert [answer.headers["x-ratelimit-limit"] for answer in answers] == ["3"] * 4
        assert ["retry-after" in answer.headers for answer in answers] == [False, False, False, True]


async def test_a_refused_argument_costs_a_call_and_limits_come_first(serving, kept):
    async with serving(**kept, per_minute={SET: 2}) as server:
        wrong = [await server.rest(SET, arguments={}) for _ in range(3)]
        assert [answer.json()["code"] for answer in wrong] == ["MCP-001", "MCP-001", "MCP-006"]


# idempotency


async def test_without_a_key_of_the_callers_nothing_is_replayed(server):
    for said in ("A", "B", "A"):
        assert (await put(server, said)).json()["metadata"].get("idempotency_key") is None
    assert await value(server) == "A", "a key derived from the arguments would have lost the last write"
    reading = await server.rest(GET, arguments=PLACE)
    assert "idempotency_key" not in reading.json()["metadata"]
    assert reading.json()["metadata"]["cached"] is False


async def test_the_same_key_and_arguments_are_answered_again_and_not_done_again(server):
    first = await put(server, "A", "key")
    await put(server, "B")
    again = await put(server, "A", "key")
    assert again.json()["data"] == first.json()["data"]
    assert await value(server) == "B"


@pytest.mark.parametrize("changed", [{"value": 1_000_000}, {"corr_id": "d"}, {"key": "l"}, {"ttl_seconds": 301}])
async def test_the_same_key_for_anything_else_is_mcp_005(server, changed):
    await put(server, 1, "key")
    conflict = await server.rest(SET, arguments={**PLACE, "value": 1, **changed}, metadata={"idempotency_key": "key"})
    assert (conflict.status_code, conflict.json()["code"]) == (409, "MCP-005")
    assert await value(server) == 1


async def test_arguments_that_say_the_same_are_the_same(server):
    await put(server, 1, "key")
    arguments = {"ttl_seconds": 300, "value": 1, "key": "k", "corr_id": "c"}
    again = await server.rest(SET, arguments=arguments, metadata={"idempotency_key": "key"})
    assert again.status_code == 200


async def test_ten_at_once_with_one_key_are_one_write(server):
    answers = await asyncio.gather(*(put(server, {"n": 1}, "key") for _ in range(10)))
    assert len({answer.json()["data"]["expires_at"] for answer in answers}) == 1


async def test_a_refused_write_leaves_its_key_free(server):
    refused = await put(server, "x" * 2**20, "key")
    assert refused.json()["code"] == "MCP-001"
    assert (await put(server, "x", "key")).status_code == 200


@pytest.mark.parametrize("key", ["", "k" * 256, 7, "a\nb"])
async def test_a_key_that_is_none_is_mcp_001(server, key):
    assert (await put(server, 1, key)).json()["code"] == "MCP-001"


async def test_over_mcp_a_key_counts_as_well(server):
    async with server.client("auto") as client:
        meta: Any = {"quantdeck/idempotency_key": "key", "quantdeck/corr_id": "mine"}
        first = await client.call_tool(SET, {**PLACE, "value": "A"}, meta=meta)
        await client.call_tool(SET, {**PLACE, "value": "B"})
        again = await client.call_tool(SET, {**PLACE, "value": "A"}, meta=meta)
        assert again.structured_content == first.structured_content
        assert again.meta["corr_id"] == "mine"
        conflict = await client.call_tool(SET, {**PLACE, "value": "C"}, meta=meta)
        assert '"code":"MCP-005"' in conflict.content[0].text


# correlation, audit, health, metrics


async def test_each_call_leaves_an_audit_event_with_its_correlation(server):
    await server.rest(SET, {"x-correlation-id": "c-17"}, arguments={**PLACE, "value": "secret"})
    await server.rest(GET, {"x-correlation-id": "c-18"}, arguments={"corr_id": "!", "key": "k"})
    fields = ("correlation_id", "tool_name", "caller", "status", "error_code", "transport")
    assert [tuple(event.get(field) for field in fields) for event in server.events] == [
        ("c-17", SET, ADDRESS, "success", None, "rest"),
        ("c-18", GET, ADDRESS, "error", "MCP-001", "rest"),
    ]
    assert all(event["request_size_bytes"] > 50 and event["response_size_bytes"] > 50 for event in server.events)
    assert all(event["latency_ms"] > 0 for event in server.events)
    assert "secret" not in repr(server.events)


async def test_the_answers_correlation_is_not_the_states(server):
    answer = await server.rest(SET, {"x-correlation-id": "c-17"}, arguments={**PLACE, "value": 1})
    assert (answer.json()["corr_id"], answer.headers["x-correlation-id"]) == ("c-17", "c-17")
    assert (await server.rest(GET, arguments={"corr_id": "c-17", "key": "k"})).json()["data"] == {"exists": False}


async def test_health_names_what_stands_behind_the_tools(server, kept):
    told = (await server.http.get("/health")).json()
    kind = "redis" if kept else "sqlite"
    assert told["status"] == "ok"
    assert told["dependencies"]["sharedstate"] == {"status": "healthy", "kind": kind}
    assert ("coordination" in told["dependencies"]) is bool(kept)


async def test_metrics_have_the_names_of_the_specs_neighbours(serving, kept):
    async with serving(**kept, per_minute={GET: 2}) as server:
        for arguments in (PLACE, {}, PLACE):
            await server.rest(GET, arguments=arguments)
        text = (await server.http.get("/metrics")).text
    assert re.search(rf'^mcp_tool_calls_total{{status="success",tool="{GET}"}} 1.0$', text, re.MULTILINE)
    assert re.search(rf'^mcp_tool_calls_total{{status="error",tool="{GET}"}} 2.0$', text, re.MULTILINE)
    assert f'mcp_tool_duration_seconds_count{{tool="{GET}"}} 3.0' in text
    assert f'mcp_validation_errors_total{{error_type="MCP-001",tool="{GET}"}} 1.0' in text
    assert f'mcp_rate_limit_hits_total{{client="{ADDRESS}"}} 1.0' in text
    assert "# TYPE mcp_backend_errors_total counter" in text
    assert f'quantdeck_tool_slo_seconds{{tool="{GET}"}} 0.02' in text


async def test_the_list_has_both_tools_whole(server):
    listed = {tool["name"]: tool for tool in (await server.http.post("/mcp/tools/list")).json()}
    assert {SET, GET} <= set(listed)
    assert all(set(tool) == {"name", "description", "inputSchema", "outputSchema"} for tool in listed.values())


async def test_an_unknown_tool_is_mcp_007_and_a_wrong_body_mcp_001(server):
    assert (await server.rest("storage.shared_state.list")).json()["code"] == "MCP-007"
    assert (await server.http.post("/mcp/tools/call", content=b"{", headers=PLAIN)).json()["code"] == "MCP-001"


def test_what_the_spec_says_of_times_and_limits_is_declared():
    said = {tool.name: tool.policy for tool in load("tools-catalog").tools if tool.name in {SET, GET}}
    assert (said[GET].p95_ms, said[GET].per_minute, said[GET].cache_s) == (20, 1000, None)
    assert (said[SET].p95_ms, said[SET].per_minute, said[SET].cache_s) == (30, 500, None)
    assert (said[GET].effect, said[SET].effect) == (False, True)
