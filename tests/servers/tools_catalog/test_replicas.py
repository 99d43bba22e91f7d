"""Two replicas behind a balancer, with one Redis between them: to a caller they are one server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support import redis
from tests.support.balancer import balanced
from tests.support.program import PROGRAM, quantdeck

pytestmark = pytest.mark.services

SET, GET = "storage.shared_state.set", "storage.shared_state.get"
PATIENCE_S = 30.0


class Replica:
    """A process of the program, on a port of its own choice."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [*PROGRAM, "serve", "--http", "--port", "0", "--stateless", "--trusted-proxies", "127.0.0.1"]
        self._process = subprocess.Popen(
            [*command, "tools-catalog", "decisions-mcp"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self._process.stderr is not None
        said = b""
        while (found := re.search(rb"http://127\.0\.0\.1:(\d+)/mcp", said)) is None:
            line = self._process.stderr.readline()
            assert line, said
            said += line
        self.port = int(found[1])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()


@dataclass(frozen=True)
class Deck:
    """Both replicas, each by itself and through the balancer."""

    url: str
    replicas: list[Replica]
    http: httpx2.AsyncClient

    async def call(self, tool: str, who: str, *, by: int | None = None, **said: Any) -> httpx2.Response:
        url = self.url if by is None else f"http://127.0.0.1:{self.replicas[by].port}"
        headers = {"authorization": f"Bearer {who}"}
        return await self.http.post(f"{url}/mcp/tools/call", json={"name": tool, **said}, headers=headers)

    async def put(self, key: str, value: Any, who: str, **said: Any) -> httpx2.Response:
        return await self.call(SET, who, arguments={"corr_id": "c", "key": key, "value": value}, **said)

    async def counted(self, by: int) -> int:
        """How many calls a replica has answered."""
        url = f"http://127.0.0.1:{self.replicas[by].port}/metrics"
        text = (await self.http.get(url, headers={"authorization": "Bearer one"})).text
        return sum(int(float(n)) for n in re.findall(r"^mcp_tool_calls_total\{.*\} (\S+)$", text, re.MULTILINE))


@pytest.fixture
async def deck(tmp_path: Path) -> AsyncIterator[Deck]:
    tokens = tmp_path / "tokens.json"
    callers = [{"id": who, "sha256": sha256(who.encode()).hexdigest(), "scopes": ["*"]} for who in ("one", "two")]
    tokens.write_text(json.dumps(callers))
    tokens.chmod(0o600)
    assert quantdeck("migrate", home=tmp_path / "home").returncode == 0
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "QUANTDECK_HOME": str(tmp_path / "home"),
        "QUANTDECK_TOKENS": str(tokens),
        "QUANTDECK_STATE": redis.available().url,
        "QUANTDECK_REDIS__PREFIX": redis.keyed().prefix,
        "QUANTDECK_LOG_LEVEL": "error",
        "QUANTDECK_DEADLINE_S": json.dumps({SET: 5, GET: 5}),  # this machine runs other tests meanwhile
    }
    async with AsyncExitStack() as stack:
        replicas = [await asyncio.to_thread(Replica, environment) for _ in range(2)]
        for replica in replicas:
            stack.callback(replica.kill)
        url = await stack.enter_async_context(balanced([replica.port for replica in replicas]))
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S))
        yield Deck(url, replicas, http)


async def at_once(calls: list[Any], most: int = 20) -> list[Any]:
    turns = asyncio.Semaphore(most)

    async def one(call: Any) -> Any:
        async with turns:
            return await call

    return list(await asyncio.gather(*map(one, calls)))


async def test_two_replicas_are_one_server(deck):
    # state: what one was given, the other has
    assert (await deck.put("k", {"a": 1}, "one", by=0)).status_code == 200
    found = (await deck.call(GET, "one", by=1, arguments={"corr_id": "c", "key": "k"})).json()
    assert (found["data"]["value"], found["metadata"]["source"]) == ({"a": 1}, "redis")

    # idempotency: one effect, whichever is asked, and a conflict on either
    calls = [deck.put("once", "x", "one", metadata={"idempotency_key": "key-1"}) for _ in range(10)]
    answers = await at_once(calls)
    assert len({answer.json()["data"]["expires_at"] for answer in answers}) == 1
    for by in (0, 1):
        conflict = await deck.put("once", "y", "one", by=by, metadata={"idempotency_key": "key-1"})
        assert (conflict.status_code, conflict.json()["code"]) == (409, "MCP-005")

    # the cache: an answer that one has made is the other's too
    asked = [(await deck.call("get_recent_decisions", "one", by=by)).json()["_metadata"]["cached"] for by in (0, 1, 0)]
    assert asked == [False, True, True]

    # rate limits: of calls in a minute there are so many for both together, and another caller has their own
    before = [await deck.counted(by) for by in (0, 1)]
    statuses = Counter(answer.status_code for answer in await at_once([deck.put("r", 1, "two") for _ in range(520)]))
    assert statuses == {200: 500, 429: 20}
    refused = await deck.put("r", 1, "two")
    assert (refused.json()["code"], refused.headers["x-ratelimit-limit"]) == ("MCP-006", "500")
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert (await deck.put("r", 1, "one")).status_code == 200
    assert all([await deck.counted(by) > before[by] + 100 for by in (0, 1)]), "the balancer asks both"


async def test_a_replica_that_is_killed_loses_no_acknowledged_write(deck):
    acknowledged: list[int] = []

    async def write(number: int) -> None:
        try:
            answer = await deck.put(f"k{number}", number, "one", metadata={"idempotency_key": f"w{number}"})
        except httpx2.TransportError:
            return
        if answer.status_code == 200:
            acknowledged.append(number)
        if len(acknowledged) == 60:
            deck.replicas[0].kill()

    await at_once([write(number) for number in range(300)])
    assert 200 < len(acknowledged) <= 300, "the other went on"
    read = [deck.call(GET, "one", arguments={"corr_id": "c", "key": f"k{number}"}) for number in acknowledged]
    values = [answer.json()["data"]["value"] for answer in await at_once(read)]
    assert values == acknowledged
