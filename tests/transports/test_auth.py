"""Who may call over HTTP, and what they see."""

from __future__ import annotations

import json
import logging
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from mcp.shared.exceptions import MCPError
from pydantic import SecretStr

from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.transports.auth import Tokens
from tests.support.fixture_server import NOTES
from tests.support.over_http import PLAIN, call, modern, modern_headers, served

READER, WRITER, ADDER, NEWCOMER = "reader-7f3a", "writer-91bc", "adder-44de", "newcomer-08aa"
PATHS = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("POST", "/mcp/fixture-desk"),
    ("POST", "/mcp/tools/call"),
    ("POST", "/mcp/tools/list"),
    ("GET", "/metrics"),
    ("GET", "/nowhere"),
]


def entry(name: str, token: str, scopes: list[str], **more: Any) -> dict[str, Any]:
    return {"id": name, "sha256": sha256(token.encode()).hexdigest(), "scopes": scopes, **more}


ENTRIES = [
    entry("reader", READER, ["read"]),
    entry("writer", WRITER, ["*"], account="north"),
    entry("adder", ADDER, ["read"], servers=["fixture-catalog"]),
]


def write(path: Path, entries: Any, mode: int = 0o600) -> Path:
    path.write_text(json.dumps(entries))
    path.chmod(mode)
    return path


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "tokens.json", ENTRIES)


@pytest.fixture
async def server(tmp_path, file):
    async with served(tmp_path / "home", tokens=file) as server:
        yield server


# Getting in.


@pytest.mark.parametrize("method,path", PATHS)
async def test_nobody_comes_in_without_a_token_that_is_known(server, method, path):
    for headers in (
        {},
        bearer("unknown"),
        {"authorization": "Bearer"},
        {"authorization": f"Basic {READER}"},
        {"authorization": READER},
    ):
        answer = await server.http.request(method, path, headers={**PLAIN, **headers})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "error" in answer.json()
    assert server.events == []


async def test_a_refusal_has_the_shape_of_its_path(server):
    rest = await server.http.post("/mcp/tools/call", headers={"x-correlation-id": "c-1"})
    assert (rest.json()["error"], rest.json()["code"], rest.json()["corr_id"]) == (True, "MCP-002", "c-1")
    rpc = (await server.http.post("/mcp")).json()
    assert (rpc["jsonrpc"], rpc["id"], rpc["error"]["code"]) == ("2.0", None, -32600)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
async def test_a_known_token_comes_in_and_names_its_caller(server, scheme):
    headers = {"authorization": f"{scheme} {READER}"}
    assert (await server.rest("echo", headers, arguments={"label": "a"})).status_code == 200
    assert server.events[-1]["caller"] == "reader"


async def test_two_authorization_headers_are_none(server):
    headers = [("authorization", f"Bearer {READER}"), ("authorization", f"Bearer {WRITER}")]
    assert (await server.http.get("/metrics", headers=headers)).status_code == 400


async def test_one_token_for_everything_needs_no_file(tmp_path):
    async with served(tmp_path, auth_token="all-in-one") as server:
        assert (await server.http.get("/metrics")).status_code == 401
        answer = await server.rest("write", bearer("all-in-one"), arguments={"text": "x"})
        assert answer.status_code == 200


async def test_blanks_around_the_one_token_are_none_of_it(tmp_path):
    async with served(tmp_path, auth_token="only-one-5c1d\n") as server:
        assert (await server.http.get("/metrics", headers=bearer("only-one-5c1d"))).status_code == 200
    assert not Tokens(Settings(auth_token=SecretStr(" \n"))).required


async def test_health_says_little_to_strangers_and_more_to_callers(server):
    assert (await server.http.get("/health")).json() == {"status": "ok"}
    assert (await server.http.get("/health", headers=bearer("unknown"))).json() == {"status": "ok"}
    assert (await server.http.get("/health", headers=bearer(READER))).json() == {"status": "ok", "dependencies": {}}


# What a token may do.


async def test_a_token_that_may_read_may_not_write(server):
    refused = await server.rest("write", bearer(READER), arguments={"text": "x"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "UNAUTHORIZED")
    assert (await server.rest("write", bearer(WRITER), arguments={"text": "x"})).status_code == 200
    assert server.world.notes == ["x"]


async def test_a_token_of_one_server_is_turned_away_at_the_others(server):
    message = modern(call("echo", label="a"))
    headers = {**modern_headers(message), **bearer(ADDER)}
    assert (await server.http.post("/mcp/fixture-desk", json=message, headers=headers)).status_code == 403
    add = modern(call("fixture_add", left=1, right=1))
    headers = {**modern_headers(add), **bearer(ADDER)}
    assert (await server.http.post("/mcp/fixture-catalog", json=add, headers=headers)).status_code == 200


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_token_of_one_server_sees_nothing_of_the_others(tmp_path, file, era):
    async with (
        served(tmp_path / "home", tokens=file, headers=bearer(ADDER)) as server,
        server.client(era) as client,
    ):
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "fixture_add",
            "fixture_rare",
            "fixture_note",
        }
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []
        assert (await client.list_prompts()).prompts == []
        server.world.notes.append("a secret")
        for ref in (t.ResourceTemplateReference(uri=f"{NOTES}/{{name}}"), t.PromptReference(name="brief")):
            with pytest.raises(MCPError, match="no such prompt"):
                await client.complete(ref, {"name": "name", "value": "a"})
        refused = await client.call_tool("echo", {"label": "a"})
        assert refused.is_error
        assert "UNAUTHORIZED" in str(refused.content)
        listed = (await server.http.post("/mcp/tools/list")).json()
        assert {tool["name"] for tool in listed} == {"fixture.add", "fixture.rare", "fixture.note"}


async def test_a_token_of_one_server_hears_nothing_of_the_others(server):
    wanted = {"notifications": {"resourceSubscriptions": [NOTES], "toolsListChanged": True}}
    message = modern({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": wanted})
    for token, heard in ((ADDER, None), (READER, [NOTES])):
        headers = {**modern_headers(message), **bearer(token)}
        async with server.http.stream("POST", "/mcp", json=message, headers=headers) as stream:
            lines = stream.aiter_lines()
            while not (line := await anext(lines)).startswith("data:"):
                pass
        assert json.loads(line[5:])["params"]["notifications"].get("resourceSubscriptions") == heard


async def test_a_session_is_of_no_use_to_another_token(server):
    session = await server.session(**bearer(READER))
    for stranger in (WRITER, ADDER):
        answer = await session.post(call("echo", label="a"), **bearer(stranger))
        assert answer.status_code == 404
    assert (await server.http.get("/mcp", headers={**session.headers, **bearer(WRITER)})).status_code == 404
    assert (await server.http.delete("/mcp", headers={**session.headers, **bearer(WRITER)})).status_code == 404
    assert (await session.post(call("echo", label="a"))).status_code == 200


# The portfolio's own token.


async def _asks_for_positions(server: Any, token: str | None) -> int:
    headers = {} if token is None else bearer(token)
    return int((await server.rest("positions", headers)).status_code)


async def test_the_portfolio_token_is_wanted_where_it_is_set(tmp_path):
    async with served(tmp_path, portfolio_token="port-folio") as server:
        assert await _asks_for_positions(server, None) == 401
        assert await _asks_for_positions(server, "another") == 401
        assert await _asks_for_positions(server, "port-folio") == 200
        assert server.events[-1]["caller"] == "portfolio"
        assert (await server.rest("echo", arguments={"label": "a"})).status_code == 200


async def test_the_portfolio_token_opens_the_door_in_front_of_it_too(tmp_path, file):
    async with served(tmp_path / "home", tokens=file, portfolio_token="port-folio") as server:
        assert await _asks_for_positions(server, None) == 401
        assert await _asks_for_positions(server, WRITER) == 401
        assert await _asks_for_positions(server, "port-folio") == 200


async def test_what_the_file_says_of_the_portfolio_token_counts(tmp_path):
    file = write(tmp_path / "tokens.json", [entry("trader", "port-folio", ["read"])])
    async with served(tmp_path / "home", tokens=file, portfolio_token="port-folio") as server:
        assert await _asks_for_positions(server, "port-folio") == 200
        assert server.events[-1]["caller"] == "trader"
        assert (await server.rest("write", bearer("port-folio"), arguments={"text": "x"})).status_code == 401


# The file.


async def test_a_changed_file_counts_from_the_next_request_on(server, file):
    assert (await server.http.get("/metrics", headers=bearer(NEWCOMER))).status_code == 401
    write(file, [entry("newcomer", NEWCOMER, ["read"])])
    assert (await server.http.get("/metrics", headers=bearer(NEWCOMER))).status_code == 200
    assert (await server.http.get("/metrics", headers=bearer(READER))).status_code == 401


@pytest.mark.parametrize("damage", ["half", "gone"])
async def test_a_file_that_cannot_be_read_any_more_leaves_things_as_they_were(server, file, damage, caplog):
    if damage == "half":
        file.write_text('[{"id": "half')
    else:
        file.unlink()
    assert (await server.http.get("/metrics", headers=bearer(READER))).status_code == 200
    assert (await server.http.get("/metrics", headers=bearer("unknown"))).status_code == 401
    assert "token_file_unreadable" in caplog.messages
    write(file, [entry("newcomer", NEWCOMER, ["read"])])
    assert (await server.http.get("/metrics", headers=bearer(NEWCOMER))).status_code == 200


BAD = {
    "not JSON": ("{", "Invalid JSON"),
    "no list": ({}, "array"),
    "empty": ([], "no tokens"),
    "the token itself": ([{"id": "a", "sha256": "my-secret-token", "scopes": ["read"]}], "0.sha256"),
    "an unknown scope": ([{**ENTRIES[0], "scopes": ["admin"]}], "0.scopes"),
    "an unknown member": ([{**ENTRIES[0], "token": "my-secret-token"}], "0.token"),
    "no scopes": ([{"id": "a", "sha256": "0" * 64}], "0.scopes"),
    "the same name twice": ([ENTRIES[0], {**ENTRIES[1], "id": "reader"}], "more than once"),
    "the same token twice": ([ENTRIES[0], {**ENTRIES[0], "id": "other"}], "more than once"),
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_file_is_one_sentence_at_the_start_without_its_secrets(tmp_path, why):
    text, said = BAD[why]
    path = tmp_path / "tokens.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    with pytest.raises(MisconfiguredError) as refused:
        Tokens(Settings(tokens=path))
    assert said in str(refused.value)
    assert str(path) in str(refused.value)
    assert "my-secret-token" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_one_sentence_at_the_start(tmp_path):
    with pytest.raises(MisconfiguredError, match="cannot be read: No such file"):
        Tokens(Settings(tokens=tmp_path / "none.json"))


@pytest.mark.parametrize("mode,warned", [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_a_file_that_others_can_read_is_warned_of(tmp_path, mode, warned, caplog):
    Tokens(Settings(tokens=write(tmp_path / "tokens.json", ENTRIES, mode)))
    assert ("token_file_readable_by_others" in caplog.messages) is warned


def test_a_mark_of_the_byte_order_does_not_spoil_a_file(tmp_path):
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps(ENTRIES), encoding="utf-8-sig")
    assert Tokens(Settings(tokens=path)).identify(READER.encode(), "peer") is not None


def test_a_token_that_is_not_ascii_is_compared_by_its_bytes(tmp_path):
    tokens = Tokens(Settings(tokens=write(tmp_path / "tokens.json", [entry("x", "schlüssel", ["read"])])))
    assert tokens.identify("schlüssel".encode(), "peer") is not None
    assert tokens.identify(os.urandom(16), "peer") is None


async def test_no_token_is_ever_logged(server, caplog):
    caplog.set_level(logging.DEBUG)
    for token in (READER, WRITER, "unknown-5511"):
        await server.rest("echo", bearer(token), arguments={"label": "a"})
        await server.http.post("/mcp", json=call("echo"), headers={**PLAIN, **bearer(token)})
    said = json.dumps(server.events) + "".join(map(repr, caplog.records)) + caplog.text
    for token in (READER, WRITER, "unknown-5511"):
        assert token not in said
        assert sha256(token.encode()).hexdigest() not in said
