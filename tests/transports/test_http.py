"""The HTTP transport as clients of both eras meet it: a real server on a free port."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Annotated, Any

import httpx2
import mcp_types as t
import pytest
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import Field

from quantdeck.core.contract import Source
from quantdeck.core.errors import Unreachable
from quantdeck.core.server import Server
from quantdeck.core.wire import digest
from quantdeck.dialects.tradestream import tradestream
from quantdeck.settings import MisconfiguredError
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.watchers import Watchers
from tests.support.fixture_server import NOTES, World
from tests.support.over_http import (
    LEGACY,
    MODERN,
    PATIENCE_S,
    PLAIN,
    Served,
    body_of,
    call,
    modern,
    modern_headers,
    served,
)
from tests.support.runtime import turns

ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])
STATELESS = pytest.mark.parametrize("stateless", [False, True])


@pytest.fixture
async def server(tmp_path):
    async with served(tmp_path) as server:
        yield server


def hashed(address: str) -> str:
    return digest(address)[:8]


def data(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return body_of(answer)["result"]["structuredContent"]["data"]


# What is offered, and to whom.


@ERAS
@STATELESS
async def test_a_client_lists_and_calls_tools(tmp_path, era, stateless):
    async with served(tmp_path, stateless=stateless) as server, server.client(era) as client:
        assert {"echo", "fixture_add", "broken_chart"} <= {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("echo", {"label": "ab", "times": 2})
        assert answer.structured_content
        assert answer.structured_content["data"] == {"label": "abab", "length": 4}


@ERAS
async def test_an_endpoint_of_one_server_offers_nothing_of_the_others(server, era):
    async with server.client(era, "/mcp/fixture-catalog") as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["fixture_add", "fixture_rare", "fixture_note"]
        with pytest.raises(MCPError, match="Unknown tool: echo"):
            await client.call_tool("echo", {"label": "a"})


@ERAS
async def test_a_tool_is_called_by_either_spelling_of_its_name(server, era):
    async with server.client(era) as client:
        for name in ("fixture.add", "fixture_add"):
            answer = await client.call_tool(name, {"left": 2, "right": 3})
            assert answer.structured_content == {"label": "sum", "length": 5}


@ERAS
async def test_a_failed_call_is_an_error_result_and_a_numbered_one_an_error(server, era):
    async with server.client(era) as client:
        answer = await client.call_tool("echo", {"label": "a", "times": 0})
        assert answer.is_error
        assert json.loads(answer.content[0].text)["error"]["code"] == "INVALID_PARAMETER"
        if era == "legacy":
            with pytest.raises(MCPError, match="Market data unavailable: there is no market") as failed:
                await client.call_tool("broken_chart", {"symbol": "X"})
            assert failed.value.error.code == -32004


@ERAS
async def test_progress_is_told_while_a_call_runs(server, era):
    told: list[float] = []

    async def heard(done: float, total: float | None, message: str | None) -> None:
        told.append(done)

    async with server.client(era) as client:
        await client.call_tool("count", {"to": 3}, progress_callback=heard)
    assert told == [1, 2, 3]


@ERAS
async def test_prompts_templates_and_completion_are_served(server, era):
    server.world.notes += ["alpha", "beta"]
    async with server.client(era) as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["brief"]
        prompt = await client.get_prompt("brief", {"topic": "gold"})
        assert prompt.messages[0].content.text == "Write a brief on gold"
        template = (await client.list_resource_templates()).resource_templates[0].uri_template
        begun = await client.complete(t.ResourceTemplateReference(uri=template), {"name": "name", "value": "al"})
        assert begun.completion.values == ["alpha"]
        note = await client.read_resource(f"{NOTES}/beta")
        assert note.contents[0].text == "beta"


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
async def test_a_change_is_heard_in_both_eras_whatever_the_endpoint(server):
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def legacy_heard(message: Any) -> None:
        if isinstance(message, t.ResourceUpdatedNotification):
            heard.put_nowait(str(message.params.uri))

    async with (
        server.client("legacy", message_handler=legacy_heard) as old,
        server.client("auto", "/mcp/fixture-desk") as new,
        new.listen(resource_subscriptions=[NOTES]) as listened,
    ):
        await old.subscribe_resource(NOTES)
        async with asyncio.timeout(PATIENCE_S):
            await _write_until(server, heard)
            event = await anext(aiter(listened))
    assert event.uri == NOTES


async def _write_until(server: Served, heard: asyncio.Queue[str]) -> None:
    """The client opens its legacy stream in its own time, and what is said before that is lost."""
    while heard.empty():
        await server.rest("write", arguments={"text": "news"})
    assert await heard.get() == NOTES


# How a call is answered.


async def test_a_plain_call_of_a_session_is_answered_as_json_under_its_session_id(server):
    session = await server.session()
    answer = await session.post(call("echo", label="a"))
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["mcp-session-id"] == session.headers["mcp-session-id"]
    assert data(answer) == {"label": "a", "length": 1}


async def test_a_call_that_reports_progress_is_answered_as_a_stream(server):
    session = await server.session()
    answer = await session.post(call("count", meta={"progressToken": 7}, to=2))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.count("notifications/progress") == 2
    assert data(answer) == {"label": "counted", "length": 2}


async def test_a_token_for_progress_that_nobody_reports_opens_no_stream(server):
    session = await server.session()
    answer = await session.post(call("echo", meta={"progressToken": 7}, label="a"))
    assert answer.headers["content-type"] == "application/json"


async def test_a_tool_that_may_take_long_is_answered_as_a_stream(tmp_path):
    async with served(tmp_path, deadline_s={"echo": 600}) as server:
        session = await server.session()
        answer = await session.post(call("echo", label="a"))
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert data(answer) == {"label": "a", "length": 1}


async def test_a_bare_call_is_answered_where_there_are_no_sessions(tmp_path):
    async with served(tmp_path, stateless=True) as server:
        answer = await server.http.post("/mcp", json=call("echo", label="a"), headers=PLAIN)
        assert data(answer) == {"label": "a", "length": 1}
        assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("era", ["legacy", "modern", "rest"])
async def test_two_hundred_calls_at_once_are_each_answered_with_their_own(server, era):
    session = await server.session()

    async def ask(number: int) -> Any:
        if era == "rest":
            return (await server.rest("echo", arguments={"label": f"{number}"})).json()["data"]["label"]
        if era == "legacy":
            answer = await session.post(call("echo", number, label=f"{number}"))
        else:
            answer = await server.modern("echo", request_id=number, label=f"{number}")
        assert body_of(answer)["id"] == number
        return data(answer)["label"]

    assert await asyncio.gather(*map(ask, range(200))) == [f"{number}" for number in range(200)]


async def test_each_call_leaves_one_event_that_says_how_it_came(server):
    session = await server.session()
    await session.post(call("echo", label="a"), **{"x-correlation-id": "c-1", "user-agent": "tester"})
    [event] = server.events
    assert (event["transport"], event["caller"], event["user_agent"]) == ("http", hashed("127.0.0.1"), "tester")
    assert event["session_id"] == session.headers["mcp-session-id"]
    assert event["correlation_id"] == "c-1"


# A plain call is refused exactly as the SDK refuses.

TWISTS: dict[str, Any] = {
    "no version of ours": lambda m, h: (m, {**h, "mcp-protocol-version": "2030-01-01"}),
    "a version the envelope contradicts": lambda m, h: (_envelope(m, version="2030-01-01"), h),
    "the wrong method header": lambda m, h: (m, {**h, "mcp-method": "tools/list"}),
    "no method header": lambda m, h: (m, {k: v for k, v in h.items() if k != "mcp-method"}),
    "the wrong name header": lambda m, h: (m, {**h, "mcp-name": "hold"}),
    "no name header": lambda m, h: (m, {k: v for k, v in h.items() if k != "mcp-name"}),
    "a name header in bad base64": lambda m, h: (m, {**h, "mcp-name": "=?base64?x?="}),
    "no envelope": lambda m, h: (_with(m, _meta={}), h),
    "half an envelope": lambda m, h: (_envelope(m, capabilities=None), h),
    "capabilities that are none": lambda m, h: (_envelope(m, capabilities=[]), h),
    "a client that is nobody": lambda m, h: (_envelope(m, client={"name": 7}), h),
    "a null id": lambda m, h: ({**m, "id": None}, h),
    "a fractional id": lambda m, h: ({**m, "id": 1.5}, h),
    "a true id": lambda m, h: ({**m, "id": True}, h),
    "another JSON-RPC": lambda m, h: ({**m, "jsonrpc": "1.0"}, h),
    "arguments in a list": lambda m, h: (_with(m, arguments=[1]), h),
    "no name": lambda m, h: (_with(m, name=None), h),
    "an unknown tool": lambda m, h: (_with(m, name="nothing"), {**h, "mcp-name": "nothing"}),
    "a batch": lambda m, h: ([m], h),
    "a string": lambda m, h: (m["method"], h),
    "only JSON accepted": lambda m, h: (m, {**h, "accept": "application/json"}),
    "nothing accepted": lambda m, h: (m, {**h, "accept": "text/html"}),
    "another content type": lambda m, h: (m, {**h, "content-type": "text/plain"}),
    "a notification": lambda m, h: ({k: v for k, v in m.items() if k != "id"}, h),
}


def _with(message: dict[str, Any], **params: Any) -> dict[str, Any]:
    return {**message, "params": {**message["params"], **params}}


def _envelope(
    message: dict[str, Any], version: str = MODERN, capabilities: Any = (), client: Any = ()
) -> dict[str, Any]:
    meta = dict(message["params"]["_meta"]) | {"io.modelcontextprotocol/protocolVersion": version}
    if capabilities is None:
        del meta["io.modelcontextprotocol/clientCapabilities"]
    elif capabilities != ():
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities
    if client != ():
        meta["io.modelcontextprotocol/clientInfo"] = client
    return _with(message, _meta=meta)


async def _bare_sdk_answer(server: Served, body: Any, headers: dict[str, str]) -> httpx2.Response:
    sdk = mcp_server(server.app, server.app.servers, Watchers())
    sdk.middleware.clear()  # ours, which would answer before the SDK has looked
    manager = StreamableHTTPSessionManager(sdk)
    transport = httpx2.ASGITransport(StreamableHTTPASGIApp(manager))
    async with manager.run(), httpx2.AsyncClient(transport=transport, base_url=server.url) as http:
        return await http.post("/mcp", content=body, headers=headers)


@pytest.mark.parametrize("twist", TWISTS)
async def test_what_is_wrong_with_a_modern_call_is_answered_as_the_sdk_answers_it(server, twist):
    right = modern(call("echo", label="a"))
    message, headers = TWISTS[twist](right, modern_headers(right))
    body = json.dumps(message).encode()
    ours = await server.http.post("/mcp", content=body, headers=headers)
    theirs = await _bare_sdk_answer(server, body, headers)
    assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content)
    assert ours.status_code in (202, 400, 406) or "error" in ours.json()


async def test_a_version_that_is_not_served_is_refused_by_its_number(server):
    message = _envelope(modern(call("echo", label="a")), version="2030-01-01")
    headers = {**modern_headers(message), "mcp-protocol-version": "2030-01-01"}
    answer = await server.http.post("/mcp", json=message, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32022
    assert answer.json()["error"]["data"] == {"supported": [MODERN], "requested": "2030-01-01"}


async def test_a_routing_header_sent_twice_is_refused(server):
    message = modern(call("echo", label="a"))
    headers = [*modern_headers(message).items(), ("mcp-name", "echo")]
    answer = await server.http.post("/mcp", json=message, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "mcp-name header appears more than once"


LEGACY_TWISTS: dict[str, tuple[Any, dict[str, str], int]] = {
    "JSON that is not whole": (b"{", {}, 400),
    "arguments in a list": (_with(call("echo"), arguments=[1]), {}, 200),
    "an unknown tool": (call("nothing"), {}, 200),
    "only JSON accepted": (call("echo", label="a"), {"accept": "application/json"}, 406),
    "another content type": (call("echo", label="a"), {"content-type": "text/plain"}, 400),
    "another session": (call("echo", label="a"), {"mcp-session-id": "0" * 32}, 404),
    "a hostile session": (call("echo", label="a"), {"mcp-session-id": "../../etc?x=\t'\""}, 404),
    "a null id": ({**call("echo", label="a"), "id": None}, {}, 400),
    "a fraction for an id": ({**call("echo", label="a"), "id": 1.5}, {}, 400),
    "a batch": ([call("echo", label="a")], {}, 400),
    "neither call nor answer": ({"jsonrpc": "2.0", "id": 1}, {}, 400),
}


@pytest.mark.parametrize("twist", LEGACY_TWISTS)
async def test_what_is_wrong_with_a_legacy_call_never_reaches_a_tool(server, twist):
    message, headers, status = LEGACY_TWISTS[twist]
    session = await server.session()
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    answer = await server.http.post("/mcp", content=body, headers={**session.headers, **headers})
    assert answer.status_code == status
    assert status != 200 or "error" in body_of(answer)
    assert "pydantic" not in answer.text
    assert server.events == []


DEEP: Any = json.loads("[" * 300 + "]" * 300)


@pytest.mark.parametrize("era", ["legacy", "modern", "rest"])
async def test_arguments_too_deep_to_be_written_are_invalid_ones(server, era):
    if era == "legacy":
        answer = await (await server.session()).post(call("echo", label=DEEP))
    elif era == "modern":
        answer = await server.modern("echo", label=DEEP)
    else:
        answer = await server.rest("echo", arguments={"label": DEEP})
    assert answer.status_code == (400 if era == "rest" else 200)
    assert "INVALID_PARAMETER" in answer.text
    assert "too deep" in answer.text


async def test_an_integer_beyond_64_bits_is_an_invalid_one_over_a_stream_too(server):
    session = await server.session()
    text = json.dumps(call("count", meta={"progressToken": 1}, to=2**70))
    answer = await server.http.post("/mcp", content=text.encode(), headers=session.headers)
    assert "INVALID_PARAMETER" in json.dumps(body_of(answer)["result"])


@ERAS
async def test_nothing_of_an_unforeseen_failure_is_told(server, era, caplog):
    """A completion is not in the pipeline, whose stages see to it for everything else."""
    server.world.notes = None
    async with server.client(era) as client:
        template = t.ResourceTemplateReference(uri=f"{NOTES}/{{name}}")
        with pytest.raises(MCPError) as failed:
            await client.complete(template, {"name": "name", "value": "a"})
    assert failed.value.error.code == -32603
    assert failed.value.error.message.startswith("The server failed in a way it did not foresee")
    assert "unexpected" in caplog.messages


@ERAS
async def test_there_is_nothing_to_complete_for_what_is_not_offered(server, era):
    async with server.client(era) as client:
        with pytest.raises(MCPError, match="no such prompt"):
            await client.complete(t.PromptReference(name="nothing"), {"name": "topic", "value": ""})
        answer = await client.complete(t.PromptReference(name="brief"), {"name": "nothing", "value": ""})
        assert answer.completion.values == []


async def test_a_call_before_the_handshake_is_refused(server):
    answer = await server.http.post("/mcp", json=call("echo", label="a"), headers=PLAIN)
    assert answer.status_code == 400
    assert "Missing session ID" in answer.text


async def test_a_session_is_over_once_it_is_deleted(server):
    session = await server.session()
    assert (await server.http.delete("/mcp", headers=session.headers)).status_code == 200
    assert (await session.post(call("echo", label="a"))).status_code == 404


async def test_a_stream_begins_anew_where_a_client_would_go_on_with_an_old_one(server):
    session = await server.session()
    headers = {**session.headers, "last-event-id": "7"}
    async with server.http.stream("GET", "/mcp", headers=headers) as stream:
        assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream")


@ERAS
async def test_a_listener_who_does_not_read_keeps_nobody_waiting(server, era):
    uri = f"{NOTES}/{'x' * 50_000}"  # so long that the buffers of two sockets are soon full
    async with server.wire() as (reader, writer):
        if era == "legacy":
            session = await server.session()
            asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}}
            assert body_of(await session.post(asked))["result"] == {}
            writer.write(server.request("/mcp", b"", session.headers).replace(b"POST", b"GET", 1))
        else:
            wanted = {"notifications": {"resourceSubscriptions": [uri]}}
            message = modern({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": wanted})
            writer.write(server.request("/mcp", json.dumps(message).encode(), modern_headers(message)))
        await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(400):
                await server.app.runtime.changed(uri)
                await turns(5)
        while (await asyncio.wait_for(reader.readline(), PATIENCE_S)).count(b"x") < 50_000:
            pass  # who reads at last is told


async def test_without_sessions_there_is_no_stream_that_would_stay_empty(tmp_path):
    async with served(tmp_path, stateless=True) as server:
        refused = await server.http.get("/mcp", headers={**PLAIN, "mcp-protocol-version": LEGACY})
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


async def test_an_id_in_flight_is_refused_and_the_first_call_can_still_be_cancelled(server):
    session = await server.session()
    held = asyncio.create_task(session.post(call("hold", 7, label="a")))
    await server.world.arrived.wait()
    refused = await session.post(call("echo", "7", label="b"))
    assert (refused.status_code, refused.json()["id"]) == (400, "7")
    assert "in flight" in refused.json()["error"]["message"]
    await session.cancel(7)
    assert (await held).json()["error"]["code"] == -32800
    assert data(await session.post(call("echo", 7, label="b"))) == {"label": "b", "length": 1}


async def test_what_a_session_watched_is_forgotten_with_it(server):
    for number in range(3):
        session = await server.session()
        for uri in (NOTES, f"{NOTES}/{number}"):
            asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}}
            assert body_of(await session.post(asked))["result"] == {}
        assert (await server.http.delete("/mcp", headers=session.headers)).status_code == 200
    await turns()
    assert server.web._watchers._legacy == {}


async def test_a_plain_call_keeps_its_session_from_idling(server):
    session = await server.session()
    [transport] = server.web._endpoints["/mcp"].manager._server_instances.values()
    await turns()
    before = transport.idle_scope.deadline
    assert before < math.inf
    held = asyncio.create_task(session.post(call("hold", label="a")))
    await server.world.arrived.wait()
    assert transport.idle_scope.deadline == math.inf
    server.world.gate.set()
    assert data(await held) == {"label": "a", "length": 1}
    await turns()  # the answer is read before its request is over
    assert transport.idle_scope.deadline > before


# Calls that are not waited for.


async def test_a_plain_call_is_cancelled_by_its_client(server):
    session = await server.session()
    held = asyncio.create_task(session.post(call("hold", "7", label="a")))
    await server.world.arrived.wait()
    await session.cancel(7)
    answer = await held
    assert answer.json()["error"]["code"] == -32800
    assert server.world.gave_up.is_set()
    assert data(await session.post(call("echo", 8, label="on"))) == {"label": "on", "length": 2}


async def test_the_cancellation_of_an_unknown_call_disturbs_no_other(server):
    session = await server.session()
    held = asyncio.create_task(session.post(call("hold", 7, label="a")))
    await server.world.arrived.wait()
    for unknown in (8, "x", None, [7], True):
        await session.cancel(unknown)
    server.world.gate.set()
    assert data(await held) == {"label": "a", "length": 1}


async def test_a_session_that_ends_takes_its_plain_calls_with_it(server):
    session = await server.session()
    held = asyncio.create_task(session.post(call("hold", label="a")))
    await server.world.arrived.wait()
    await server.http.delete("/mcp", headers=session.headers)
    assert "error" in (await held).json()
    assert server.world.gave_up.is_set()


async def _posted(server: Served, era: str, tool: str, **arguments: Any) -> bytes:
    if era == "rest":
        return server.request("/mcp/tools/call", json.dumps({"name": tool, "arguments": arguments}).encode())
    message = call(tool, **arguments)
    if era == "modern":
        message = modern(message)
        return server.request("/mcp", json.dumps(message).encode(), modern_headers(message))
    session = await server.session()
    return server.request("/mcp", json.dumps(message).encode(), session.headers)


@pytest.mark.parametrize("era", ["legacy", "modern", "rest"])
async def test_a_reader_who_leaves_is_not_worked_for_any_longer(server, era):
    async with server.wire() as (_, writer):
        writer.write(await _posted(server, era, "hold", label="a"))
        await server.world.arrived.wait()
    async with asyncio.timeout(PATIENCE_S):
        await server.world.gave_up.wait()


@pytest.mark.parametrize("era", ["legacy", "modern", "rest"])
async def test_an_effect_that_has_begun_is_finished_though_its_caller_has_left(server, era):
    async with server.wire() as (_, writer):
        writer.write(await _posted(server, era, "write_slowly", text="kept"))
        await server.world.arrived.wait()
    async with asyncio.timeout(PATIENCE_S):
        while server.app.runtime.observer.in_flight:
            await turns()
    assert not server.world.gave_up.is_set()
    server.world.gate.set()
    await server.app.runtime.tasks.finish(30)
    assert server.world.notes == ["kept"]


# Bodies.

TARGETS = pytest.mark.parametrize("path", ["/mcp", "/mcp/fixture-desk", "/mcp/tools/call", "/mcp/tools/list"])


@TARGETS
async def test_a_body_of_ten_megabytes_is_refused_by_its_length(server, path):
    answer = await server.http.post(path, content=b" " * 10_000_000, headers=PLAIN)
    assert answer.status_code == 413


@TARGETS
async def test_a_body_that_grows_too_large_is_refused_while_it_comes(tmp_path, path):
    async def chunks():
        for _ in range(64):
            yield b" " * 4096

    async with served(tmp_path, http={"max_body_mb": 0.0625}) as server:
        answer = await server.http.post(path, content=chunks(), headers=PLAIN)
        assert answer.status_code == 413


@TARGETS
async def test_half_a_body_from_a_client_that_leaves_disturbs_nobody(server, path):
    async with server.wire() as (_, writer):
        whole = server.request(path, json.dumps(call("echo", label="a")).encode())
        writer.write(whole[:-5])
        await writer.drain()
    assert data(await server.modern("echo", label="on")) == {"label": "on", "length": 2}
    assert len(server.events) == 1


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"id": NaN}'])
async def test_a_body_that_is_not_json_is_a_parse_error_in_either_era(server, body):
    headers = modern_headers(modern(call("echo")))
    answer = await server.http.post("/mcp", content=body, headers=headers)
    assert answer.status_code == 400
    session = await server.session()
    answer = await server.http.post("/mcp", content=body, headers=session.headers)
    assert answer.status_code == 400
    assert "error" in answer.json()


REFUSED = b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n"
HEALTHY = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
HALF = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\nhalf"
SLOW = {
    "says nothing": (b"", b""),
    "half a head": (b"", b"POST /mcp HTTP/1.1\r\nhost: loc"),
    "a body that was refused": (REFUSED, b"half"),
    "half a second head": (HEALTHY, b"GET /he"),
    "half a body": (b"", HALF),
}


@pytest.mark.parametrize("slow", SLOW)
async def test_a_client_whose_request_does_not_arrive_is_hung_up_on(tmp_path, slow):
    answered, begun = SLOW[slow]
    async with served(tmp_path, http={"arrival_s": 0.05}) as server, server.wire() as (reader, writer):
        async with asyncio.timeout(PATIENCE_S):
            if answered:
                writer.write(answered)
                await reader.readuntil(b"}")
            writer.write(begun)
            said = await reader.read()
        assert (b" 408 " in said) is (slow == "half a body")


async def test_a_request_that_takes_its_time_to_be_answered_is_not_hung_up_on(tmp_path):
    async with served(tmp_path, http={"arrival_s": 0.05}) as server:
        held = asyncio.create_task(server.modern("hold", label="a"))
        await server.world.arrived.wait()
        async with server.wire() as (reader, _), asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""  # who came later has been hung up on meanwhile
        server.world.gate.set()
        assert data(await held) == {"label": "a", "length": 1}


async def test_garbage_in_place_of_http_is_a_400(server):
    async with server.wire() as (reader, writer):
        writer.write(b"\x16\x03\x01 not http at all\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")


# The door.

PATHS = ["/mcp", "/mcp/fixture-desk", "/mcp/tools/call", "/mcp/tools/list", "/health", "/metrics"]


@pytest.mark.parametrize("path", PATHS)
async def test_another_host_is_not_answered(server, path):
    method = "GET" if path in ("/health", "/metrics") else "POST"
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[::1", "localhost:80:80"):
        answer = await server.http.request(method, path, headers={"host": host})
        assert answer.status_code == 421, host


@pytest.mark.parametrize("path", PATHS)
async def test_a_foreign_page_is_not_answered(server, path):
    method = "GET" if path in ("/health", "/metrics") else "POST"
    for origin in ("https://evil.example", "http://localhost.evil.example", "null", "http://localhost@evil.example"):
        answer = await server.http.request(method, path, headers={"origin": origin})
        assert answer.status_code == 403, origin


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:8003", "[::1]:80", "Desk.Example", "desk.example:8443", "localhost.:80"]
)
async def test_loopback_and_the_hosts_that_are_set_are_answered(tmp_path, host):
    async with served(tmp_path, http={"hosts": ["desk.example"]}) as server:
        assert (await server.http.get("/health", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("path", ["/mcp", "/mcp/fixture-desk"])
async def test_a_slash_at_the_end_changes_nothing(server, path):
    assert data(await server.modern("echo", path=path + "/", label="a")) == {"label": "a", "length": 1}


async def test_the_pages_that_are_set_may_call_and_read(tmp_path):
    async with served(tmp_path, http={"origins": ["https://desk.example"]}) as server:
        page = {"origin": "https://desk.example", "access-control-request-method": "POST"}
        asked = await server.http.options("/mcp", headers={**page, "access-control-request-headers": "mcp-method"})
        assert asked.headers["access-control-allow-origin"] == "https://desk.example"
        answer = await server.http.get("/health", headers={"origin": "https://desk.example"})
        assert answer.headers["access-control-allow-origin"] == "https://desk.example"
        other = await server.http.get("/health", headers={"origin": "https://evil.example"})
        assert (other.status_code, "access-control-allow-origin" in other.headers) == (403, False)


async def test_forwarded_addresses_are_believed_from_trusted_proxies_only(tmp_path):
    async with served(tmp_path / "a") as server:
        await server.rest("echo", {"x-forwarded-for": "203.0.113.9"}, arguments={"label": "a"})
        assert server.events[-1]["caller"] == hashed("127.0.0.1")
    async with served(tmp_path / "b", http={"trusted_proxies": ["127.0.0.1", "10.0.0.0/8"]}) as server:
        chain = {"x-forwarded-for": "198.51.100.1, 203.0.113.9, 10.1.2.3"}
        await server.rest("echo", chain, arguments={"label": "a"})
        assert server.events[-1]["caller"] == hashed("203.0.113.9")


@pytest.mark.parametrize("slip", ["proxy.internal", "10.0.0.0/33", "127.0.0.1:80"])
async def test_a_proxy_that_could_never_be_recognised_is_refused_at_the_start(tmp_path, slip):
    with pytest.raises(MisconfiguredError, match="is no trusted proxy"):
        async with served(tmp_path, http={"trusted_proxies": [slip]}):
            pass


async def test_blanks_around_a_trusted_proxy_do_not_hide_it(tmp_path):
    async with served(tmp_path, http={"trusted_proxies": ["10.0.0.1", " 127.0.0.1"]}) as server:
        await server.rest("echo", {"x-forwarded-for": "203.0.113.9"}, arguments={"label": "a"})
        assert server.events[-1]["caller"] == hashed("203.0.113.9")


@pytest.mark.parametrize(
    "name,value",
    [
        ("x-correlation-id", "\xff" * 10),
        ("x-correlation-id", "a" * 5000),
        ("user-agent", "'; drop table --"),
        ("mcp-session-id", "\x7f"),
        ("accept", "," * 1000),
        ("mcp-protocol-version", "\xe9"),
        ("authorization", "Bearer"),
        ("content-type", "application/json; charset=\xff"),
    ],
)
async def test_a_hostile_header_breaks_nothing(server, name, value):
    headers = {**PLAIN, name: value.encode("latin-1")}
    for path in ("/mcp", "/mcp/tools/call"):
        answer = await server.http.post(path, content=json.dumps(call("echo", label="a")).encode(), headers=headers)
        assert answer.status_code < 500
    assert data(await server.modern("echo", label="on")) == {"label": "on", "length": 2}


async def test_unknown_places_and_methods_are_refused_in_words(server):
    nowhere = await server.http.get("/nowhere")
    assert (nowhere.status_code, nowhere.json()) == (404, {"error": "Not found: there is nothing at /nowhere"})
    no_server = await server.http.post("/mcp/nobody", json={})
    assert (no_server.status_code, no_server.json()["error"]["code"]) == (404, -32600)
    for method, path, allowed in (("GET", "/mcp/tools/call", "POST"), ("POST", "/health", "GET, HEAD")):
        refused = await server.http.request(method, path)
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
    headers = {**PLAIN, "mcp-protocol-version": LEGACY}
    assert (await server.http.put("/mcp", headers=headers)).status_code in (400, 405)


# Health and metrics.


class Sick(Source):
    source = "sick"

    async def ping(self) -> None:
        raise Unreachable("The sick one cannot be reached", source="sick")

    async def ask(self) -> int:
        raise Unreachable("Connection to the sick one failed", source="sick")


class Silent(Source):
    source = "silent"

    async def ping(self) -> None:
        raise TimeoutError


@tradestream.tool(errors=())
async def ask_sick(sick: Sick, question: Annotated[str, Field(description="What to ask")]) -> dict[str, int]:
    """Ask what does not answer"""
    return {"answer": await sick.ask()}


def _sick(_: World) -> tuple[Server, ...]:
    return (Server(name="fixture-sick", purpose="Fails", tools=(ask_sick,)),)


async def test_health_says_which_dependency_is_not_well(tmp_path):
    async with served(tmp_path, make=_sick) as server:
        server.app.runtime.source = lambda kind: kind()
        answer = await server.http.get("/health")
    assert answer.status_code == 503
    sick = {"status": "unhealthy", "kind": "sick", "advice": "The sick one cannot be reached"}
    assert answer.json() == {"status": "degraded", "dependencies": {"sick": sick}}


async def test_a_dependency_that_does_not_answer_in_time_is_unhealthy(tmp_path):
    async with served(tmp_path, make=_sick) as server:
        server.app.runtime.source = lambda _: Silent()
        answer = await server.http.get("/health")
    assert (answer.status_code, answer.json()["dependencies"]["sick"]["status"]) == (503, "unhealthy")


async def test_metrics_count_what_has_been_called(server):
    for left in (1, 2, "three"):
        await server.rest("fixture.add", arguments={"left": left, "right": 1})
    for _ in range(2):
        await server.rest("fixture.rare")
    lines = (await server.http.get("/metrics")).text.splitlines()
    assert 'mcp_tool_calls_total{status="success",tool="fixture.add"} 2.0' in lines
    assert 'mcp_tool_calls_total{status="error",tool="fixture.add"} 1.0' in lines
    assert 'mcp_tool_duration_seconds_count{tool="fixture.add"} 3.0' in lines
    assert 'mcp_validation_errors_total{error_type="MCP-001",tool="fixture.add"} 1.0' in lines
    assert f'mcp_rate_limit_hits_total{{client="{hashed("127.0.0.1")}"}} 1.0' in lines
    assert 'quantdeck_tool_slo_seconds{tool="fixture.add"} 0.1' in lines
    assert "quantdeck_calls_in_flight 0.0" in lines
    assert any(line.startswith('quantdeck_tool_p95_seconds{tool="fixture.add"}') for line in lines)


async def test_metrics_count_failures_of_what_stands_behind(tmp_path):
    async with served(tmp_path, make=_sick) as server:
        server.app.runtime.source = lambda kind: kind()
        await server.rest("ask_sick", arguments={"question": "well?"})
        assert 'mcp_backend_errors_total{backend="sick"} 1.0' in (await server.http.get("/metrics")).text
