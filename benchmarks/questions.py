"""Questions to one server of ours, each timed in turn with the others and with a tool that does nothing."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from benchmarks import messages
from benchmarks.client_stdio import StdioClient
from benchmarks.load import Call, Client, Pace, medians, rounds
from benchmarks.messages import Template
from benchmarks.process import PeerFailed, Process

NOTHING = "nothing"


@dataclass(frozen=True)
class Question:
    """One call, always the same; the load's way of asking it."""

    client: StdioClient
    template: Template

    @asynccontextmanager
    async def lanes(self, tool: str, width: int) -> AsyncIterator[list[Call]]:
        del tool

        async def once() -> None:
            await self.client.ask(self.template)

        yield [once] * width


def command(*servers: str) -> list[str]:
    """How such a server is started; its settings come from the environment."""
    return [sys.executable, "-m", "benchmarks.peers.own_peer", *servers]


async def opened(process: Process) -> StdioClient:
    client = StdioClient(process)
    await client.open(None)
    return client


async def ask(client: StdioClient, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """One answer's body; a failed call is no answer."""
    told = messages.result(await client.ask(_template(tool, arguments)))
    if told.get("isError"):
        raise PeerFailed(f"{tool}: {told['content'][0]['text'][:300]}")
    body: dict[str, Any] = msgspec.json.decode(told["content"][0]["text"])
    return body


async def timed(
    client: StdioClient,
    questions: Mapping[str, tuple[str, Mapping[str, Any]]],
    pace: Pace,
    beside: Mapping[str, Client] | None = None,
) -> dict[str, dict[str, float]]:
    """Medians by question, and of the tool that does nothing; `beside` is what takes its turn as "NAME, bare"."""
    all_of_them = {NOTHING: ("noop", {"symbol": "BTC/USD", "limit": 5}), **questions}
    for tool, arguments in all_of_them.values():
        await ask(client, tool, arguments)
    subjects: dict[tuple[str], tuple[Client, str]] = {
        (name,): (Question(client, _template(*asked)), name) for name, asked in all_of_them.items()
    }
    subjects |= {(f"{name}, bare",): (bare, name) for name, bare in (beside or {}).items()}
    samples, stopped = await rounds(subjects, pace)
    if stopped:
        raise PeerFailed(f"stopped: {stopped}")
    return {name: medians(taken) for (name,), taken in samples.items()}


def _template(tool: str, arguments: Mapping[str, Any]) -> Template:
    return messages.template("tools/call", {"name": tool, "arguments": dict(arguments)})
