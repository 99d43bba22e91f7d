"""The REST facade: the catalog's envelope, each spec's statuses."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.over_http import PLAIN, served


@pytest.fixture
async def server(tmp_path):
    async with served(tmp_path, migrated=True) as server:
        yield server


async def test_the_list_is_bare_and_names_tools_as_their_specs_write_them(server):
    answer = await server.http.post("/mcp/tools/list")
    tools = {tool["name"]: tool for tool in answer.json()}
    assert {"echo", "fixture.add", "broken_chart"} <= set(tools)
    assert set(tools["fixture.add"]) == {"name", "description", "inputSchema", "outputSchema"}
    assert tools["fixture.add"]["inputSchema"]["required"] == ["left", "right"]


@pytest.mark.parametrize("name", ["fixture.add", "fixture_add"])
async def test_a_call_is_answered_in_the_catalogs_envelope(server, name):
    answer = await server.rest(name, arguments={"left": 2, "right": 3}, version="1.0")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["error"], body["tool"], body["data"]) == (False, "fixture.add", {"label": "sum", "length": 5})
    assert body["corr_id"] == answer.headers["x-correlation-id"]
    assert body["corr_id"].startswith("mcp_")
    assert len(body["corr_id"]) == 12
    assert {"timestamp", "duration_ms", "metadata"} <= set(body)
    assert int(answer.headers["x-ratelimit-limit"]) == 100


async def test_the_callers_correlation_is_echoed_and_the_metadatas_counts_first(server):
    headers, arguments = {"x-correlation-id": "from-header"}, {"left": 1, "right": 1}
    answer = await server.rest("fixture.add", headers, arguments=arguments)
    assert answer.headers["x-correlation-id"] == answer.json()["corr_id"] == "from-header"
    answer = await server.rest("fixture.add", headers, arguments=arguments, metadata={"corr_id": "from-body"})
    assert answer.headers["x-correlation-id"] == answer.json()["corr_id"] == "from-body"


@pytest.mark.parametrize("hostile", ["a\r\nset-cookie: x=1", "\u20ac", "x" * 200, ""])
async def test_a_correlation_that_no_header_could_carry_is_replaced(server, hostile):
    metadata = {"corr_id": hostile}
    answer = await server.rest("fixture.add", arguments={"left": 1, "right": 1}, metadata=metadata)
    assert answer.status_code == 200
    assert answer.headers["x-correlation-id"].startswith("mcp_")
    assert "set-cookie" not in answer.headers


async def test_an_unknown_tool_is_mcp_007(server):
    answer = await server.rest("fixture.nothing", {"x-correlation-id": "c-1"})
    assert answer.status_code == 404
    body = answer.json()
    assert (body["error"], body["code"], body["tool"], body["corr_id"]) == (True, "MCP-007", "fixture.nothing", "c-1")
    assert "not found" in body["message"]


@pytest.mark.parametrize("arguments", [{}, {"left": 1}, {"left": "1", "right": 2}, {"left": 1, "right": 2, "more": 3}])
async def test_arguments_outside_the_schema_are_mcp_001_in_the_documented_words(server, arguments):
    answer = await server.rest("fixture.add", arguments=arguments)
    assert answer.status_code == 400
    assert answer.json()["code"] == "MCP-001"
    assert answer.json()["message"].startswith("Invalid arguments: ")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"name": 7}',
        b'{"name": "echo", "arguments": []}',
        b'{"name": "echo", "metadata": "x"}',
        b'{"name": "echo", "metadata": {"idempotency_key": 7}}',
        b'{"name": "echo", "metadata": {"idempotency_key": "' + b"k" * 256 + b'"}}',
        b"[" * 5000 + b"]" * 5000,
    ],
)
async def test_a_body_that_is_no_call_is_mcp_001(server, body):
    answer = await server.http.post("/mcp/tools/call", content=body, headers=PLAIN)
    assert answer.status_code == 400
    assert (answer.json()["error"], answer.json()["code"]) == (True, "MCP-001")
    assert answer.json()["message"].startswith("Invalid arguments: ")
    assert server.events == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
async def test_another_content_type_is_415(server, kind):
    headers = {} if kind is None else {"content-type": kind}
    answer = await server.http.post("/mcp/tools/call", content=b'{"name": "echo"}', headers=headers)
    assert answer.status_code == 415


async def test_what_comes_too_fast_is_429_and_says_when_to_come_again(server):
    assert (await server.rest("fixture.rare")).status_code == 200
    answer = await server.rest("fixture.rare")
    assert (answer.status_code, answer.json()["code"]) == (429, "MCP-006")
    assert answer.headers["x-ratelimit-remaining"] == "0"
    assert 0 < int(answer.headers["retry-after"]) <= 60


async def test_tools_of_other_specs_answer_in_their_own_envelope_and_status(server):
    answer = await server.rest("echo", arguments={"label": "a"})
    assert answer.json()["data"] == {"label": "a", "length": 1}
    refused = await server.rest("echo", arguments={"label": "a", "times": 0})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_PARAMETER")


async def test_a_failure_by_number_keeps_its_number(server):
    answer = await server.rest("broken_chart", arguments={"symbol": "X"})
    assert answer.status_code == 503
    message = "Market data unavailable: there is no market"
    assert answer.json() == {"error": {"code": -32004, "message": message, "data": {"symbol": "X"}}}


@pytest.mark.parametrize("where", ["metadata", "header"])
async def test_a_write_under_a_key_is_made_once_and_its_answer_replayed(server, where):
    def said(key: str):
        if where == "header":
            return {"headers": {"idempotency-key": key}}
        return {"metadata": {"idempotency_key": key}}

    answers = [await server.rest("fixture.note", arguments={"text": "once"}, **said("k-1")) for _ in range(2)]
    assert [answer.json()["data"]["notes"] for answer in answers] == [["once"], ["once"]]
    assert server.world.notes == ["once"]
    conflict = await server.rest("fixture.note", arguments={"text": "other"}, **said("k-1"))
    assert (conflict.status_code, conflict.json()["code"]) == (409, "MCP-005")


async def test_a_deadline_is_answered_with_its_own_status(tmp_path):
    async with served(tmp_path, deadline_s={"hold": 0.01}) as server:
        answer = await server.rest("hold", arguments={"label": "a"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "TIMEOUT")


async def test_the_same_write_sent_twice_at_once_is_made_once(server):
    calls = [
        server.rest("fixture.note", arguments={"text": "once"}, metadata={"idempotency_key": "k"}) for _ in range(5)
    ]
    for answer in await asyncio.gather(*calls):
        assert answer.json()["data"]["notes"] == ["once"]


async def test_a_body_in_another_encoding_is_refused_not_guessed(server):
    body = json.dumps({"name": "echo"}).encode("utf-16")
    assert (await server.http.post("/mcp/tools/call", content=body, headers=PLAIN)).status_code == 400
