"""Clients of the REST facade, each with a token and a connection of its own: in a rhythm or as fast as they can."""

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

from benchmarks.client_http import Connection, connected
from benchmarks.process import START_TIMEOUT_S, PeerFailed, explained, started
from tests.support.ports import free_port

CLIENTS = 20

Arguments = Callable[[int], Mapping[str, Any]]
"""What the call of this number asks with."""


@dataclass(frozen=True)
class Took:
    """Milliseconds of calls that were answered well."""

    p50_ms: float
    p95_ms: float
    rps: float


@asynccontextmanager
async def serving(home: Path, *servers: str, **settings: str) -> AsyncIterator[list[Connection]]:
    """A connection of each client to a server process that asks for tokens; limits are each client's own."""
    tokens, port = home / "tokens.json", free_port()
    entries = [
        {"id": who, "sha256": sha256(who.encode()).hexdigest(), "scopes": ["*"]} for who in map(_who, range(CLIENTS))
    ]
    tokens.write_text(json.dumps(entries))
    tokens.chmod(0o600)
    command = [sys.executable, "-m", "quantdeck", "serve", "--http", "--port", str(port), *servers]
    said = {"QUANTDECK_HOME": str(home), "QUANTDECK_TOKENS": str(tokens), "QUANTDECK_LOG_LEVEL": "error", **settings}
    async with started(command, **said) as process, AsyncExitStack() as stack:
        url = f"http://127.0.0.1:{port}"
        with explained(process):
            async with asyncio.timeout(START_TIMEOUT_S):
                await _listening(url)
        yield [await stack.enter_async_context(connected(url)) for _ in range(CLIENTS)]


async def paced(
    connections: list[Connection], tool: str, arguments: Arguments, per_minute: int, seconds: float
) -> Took:
    """All clients at once, each at the most calls a minute that its limit allows, at times of its own."""
    pause_s = 60 / per_minute

    async def work(client: int) -> list[float]:
        begun, took = perf_counter() + random.uniform(0, pause_s), []
        for turn in range(int(seconds / pause_s)):
            await asyncio.sleep(begun + turn * pause_s - perf_counter())
            took.append(await _call(connections[client], client, tool, arguments(client * 100_000 + turn)))
        return took

    return await _all(work)


async def flat_out(connections: list[Connection], tool: str, arguments: Arguments, calls: int) -> Took:
    """All clients at once, each with one call in flight all the time."""

    async def work(client: int) -> list[float]:
        return [
            await _call(connections[client], client, tool, arguments(client * 100_000 + turn))
            for turn in range(calls // CLIENTS)
        ]

    return await _all(work)


async def _all(work: Callable[[int], Any]) -> Took:
    begun = perf_counter()
    took = [one for each in await asyncio.gather(*map(work, range(CLIENTS))) for one in each]
    cuts = quantiles(took, n=20)
    return Took(cuts[9], cuts[18], len(took) / (perf_counter() - begun))


async def _call(connection: Connection, client: int, tool: str, arguments: Mapping[str, Any]) -> float:
    head = (
        "POST /mcp/tools/call HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {_who(client)}\r\n"
    )
    body = json.dumps({"name": tool, "arguments": arguments}).encode()
    begun = perf_counter()
    answer = await connection.post(head.encode(), body)
    took_ms = (perf_counter() - begun) * 1e3
    if answer.status != 200:
        raise PeerFailed(f"{tool}: {answer.status} {answer.body[:200]!r}")
    return took_ms


def _who(client: int) -> str:
    return f"client-{client}"


async def _listening(url: str) -> None:
    while True:
        try:
            async with connected(url):
                return
        except OSError:
            await asyncio.sleep(0.02)
