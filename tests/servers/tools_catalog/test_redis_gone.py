"""Redis stopped, silent and back again, as callers over REST and MCP see it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quantdeck.servers import load
from quantdeck.settings import Redis
from tests.support.over_http import Served
from tests.support.redis import available, keyed, own_server
from tests.support.slow_wire import SlowWire

pytestmark = pytest.mark.services

SET, GET = "storage.shared_state.set", "storage.shared_state.get"
PLACE = {"corr_id": "c", "key": "k"}
HALF = {SET: 0.5, GET: 0.5}


async def both(server: Served, **said: Any) -> list[tuple[int, str | None]]:
    """What is answered to a write and a read: the status and the code."""
    told = []
    for tool, arguments in ((SET, {**PLACE, "value": 1}), (GET, PLACE)):
        answer = await server.rest(tool, arguments=arguments, **said)
        told.append((answer.status_code, answer.json().get("code")))
    return told


async def health(server: Served) -> tuple[int, dict[str, str]]:
    server.web._health._asked_at = float("-inf")  # it asks once a second at most
    told = await server.http.get("/health")
    found = {name: one["status"] for name, one in told.json()["dependencies"].items()}
    return told.status_code, {name: found[name] for name in ("coordination", "sharedstate")}


async def test_redis_stopped_is_mcp_003_at_once_and_back_without_a_restart(serving):
    with own_server() as redis:
        async with serving(state=redis.url) as server:
            assert await both(server) == [(200, None)] * 2
            assert await health(server) == (200, {"coordination": "healthy", "sharedstate": "healthy"})
            with redis.stopped():
                for _ in range(2):
                    assert await both(server) == [(503, "MCP-003")] * 2
                refused = (await server.rest(GET, arguments=PLACE)).json()
                assert refused["message"].startswith("Backend unavailable: No connection to Redis")
                assert str(redis.port) not in refused["message"]
                assert await both(server, metadata={"idempotency_key": "k"}) == [(503, "MCP-003")] * 2
                assert await health(server) == (503, {"coordination": "unhealthy", "sharedstate": "unhealthy"})
            assert await both(server) == [(200, None)] * 2
            assert await health(server) == (200, {"coordination": "healthy", "sharedstate": "healthy"})
        assert server.app.metrics.backends["redis"] >= 6


def test_the_tools_own_times_are_the_specs():
    assert {tool.name: tool.policy.deadline_s for tool in load("tools-catalog").tools if tool.name in HALF} == {
        GET: 0.05,
        SET: 0.1,
    }


async def test_a_server_that_starts_without_redis_serves_what_needs_none_and_the_rest_later(serving):
    with own_server() as redis:
        redis.stop()
        async with serving(state=redis.url) as server:
            assert (await server.http.post("/mcp/tools/list")).status_code == 200
            assert await both(server) == [(503, "MCP-003")] * 2
            redis.start()
            assert await both(server) == [(200, None)] * 2


async def test_a_silent_redis_is_mcp_004_after_the_tools_own_time(serving):
    async with (
        SlowWire(available().port).laid() as wire,
        serving(state=f"redis://127.0.0.1:{wire.port}", redis=keyed(max_connections=4), deadline_s=HALF) as server,
    ):
        assert await both(server) == [(200, None)] * 2
        wire.stall()
        answers = await asyncio.gather(*(server.rest(GET, arguments=PLACE) for _ in range(8)))
        assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(504, "MCP-004")}
        written = (await server.rest(SET, arguments={**PLACE, "value": 2})).json()
        assert (written["code"], written["details"]["timeout_ms"]) == ("MCP-004", 500)
        wire.flow()
        assert await both(server) == [(200, None)] * 2


async def test_a_write_that_redis_was_asked_for_and_did_not_answer_is_of_unknown_outcome(serving):
    """The limit is counted before the write, over the same Redis: with it off, the write itself meets the silence."""
    async with SlowWire(available().port).laid() as wire:
        said = {"state": f"redis://127.0.0.1:{wire.port}", "redis": keyed(), "per_minute": {SET: 0}, "deadline_s": HALF}
        async with serving(**said) as server:
            await both(server)
            wire.stall()
            written = (await server.rest(SET, arguments={**PLACE, "value": 2})).json()
            assert (written["code"], written["details"]) == ("MCP-004", {"timeout_ms": 500, "outcome": "unknown"})
            wire.flow()
            assert (await server.rest(SET, arguments={**PLACE, "value": 3})).status_code == 200
            assert (await server.rest(GET, arguments=PLACE)).json()["data"]["value"] == 3


async def test_over_mcp_the_failure_is_the_same_envelope(serving):
    with own_server() as redis:
        async with serving(state=redis.url) as server, server.client("auto") as client:
            await client.call_tool(GET, PLACE)
            with redis.stopped():
                failed = await client.call_tool(GET, PLACE)
            assert failed.is_error
            assert '"code":"MCP-003"' in failed.content[0].text
            assert not (await client.call_tool(GET, PLACE)).is_error


def test_the_pools_of_a_process_are_bounded():
    assert Redis().max_connections == 16
