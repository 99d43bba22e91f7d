"""Servers of no use but to tests: tools of three specs, something to wait for, a resource that changes, a prompt.

As a program it serves them over HTTP; its argument is the settings, as JSON.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from quantdeck.core.call import Call, Progress
from quantdeck.core.contract import Contract, Handler, Policy
from quantdeck.core.server import Prompt, Resource, ResourceTemplate, Server
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.chart import UNAVAILABLE, chart
from quantdeck.dialects.declaring import read
from quantdeck.dialects.tradestream import tradestream
from quantdeck.observability.logs import LineWriter, configure
from quantdeck.settings import Settings

__all__ = ["NOTES", "World", "fixture_servers"]

NOTES = "fixture://notes"

Label = Annotated[str, Field(description="What to call it")]
Text = Annotated[str, Field(description="What to write down")]


@dataclass
class World:
    """What the tools have done, and the gate at which the slow ones wait."""

    notes: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Somebody waits."""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    gave_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Somebody who waited was cancelled."""

    async def wait(self) -> None:
        self.arrived.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.gave_up.set()
            raise


class Announce:
    """Tells of changed resources."""

    def __init__(self, changed: Callable[[str], Awaitable[None]]) -> None:
        self.changed = changed

    @classmethod
    def from_call(cls, call: Call) -> Announce:
        return cls(call.runtime.changed)


@dataclass(frozen=True)
class Echo:
    label: str
    length: int


@dataclass(frozen=True)
class Written:
    notes: list[str]


def fixture_servers(world: World) -> tuple[Server, ...]:
    """All three."""
    return _desk(world), _catalog(world), _chart()


def _desk(world: World) -> Server:
    @tradestream.tool(errors=())
    async def echo(label: Label, times: Annotated[int, Field(ge=1, description="How often")] = 1) -> Echo:
        """Say it again"""
        return Echo(label * times, len(label) * times)

    @tradestream.tool(errors=())
    async def hold(label: Label) -> Echo:
        """Wait at the gate, then say it"""
        await world.wait()
        return Echo(label, len(label))

    @tradestream.tool(errors=(), effect=True)
    async def write(announce: Announce, text: Text) -> Written:
        """Write a note down"""
        world.notes.append(text)
        await announce.changed(NOTES)
        return Written(world.notes)

    @tradestream.tool(errors=(), effect=True)
    async def write_slowly(text: Text) -> Written:
        """Wait at the gate, then write a note down"""
        await world.wait()
        world.notes.append(text)
        return Written(world.notes)

    @tradestream.tool(errors=())
    async def count(progress: Progress, to: Annotated[int, Field(ge=1, description="The last number")]) -> Echo:
        """Count and tell how far"""
        for number in range(1, to + 1):
            await progress(number, to)
        return Echo("counted", to)

    @tradestream.tool(errors=())
    async def count_held(progress: Progress) -> Echo:
        """Tell of a beginning, then wait at the gate"""
        await progress(1, 2)
        await world.wait()
        return Echo("held", 1)

    @tradestream.tool(errors=())
    async def held() -> Echo:
        """Answer as soon as somebody waits at the gate"""
        await world.arrived.wait()
        return Echo("held", 1)

    @tradestream.tool(errors=(), secret="portfolio")
    async def positions() -> Echo:
        """What only the holder of the portfolio token may see"""
        return Echo("positions", 0)

    return Server(
        name="fixture-desk",
        purpose="Tools of the first spec",
        tools=(echo, hold, write, write_slowly, count, count_held, held, positions),
        resources=(_notes(world),),
        templates=(_note(world),),
        prompts=(_brief(),),
    )


def _readable(handler: Handler) -> Contract:
    return read(handler, dialect=catalog, policy=Policy(), is_tool=False)


def _notes(world: World) -> Resource:
    async def notes() -> list[str]:
        """Every note"""
        return world.notes

    return Resource(uri=NOTES, read=_readable(notes), mime_type="application/json")


def _note(world: World) -> ResourceTemplate:
    async def note(name: Label) -> str:
        """One note"""
        return next(text for text in world.notes if text == name)

    async def complete(begun: str) -> list[str]:
        return [text for text in world.notes if text.startswith(begun)]

    return ResourceTemplate(uri_template=f"{NOTES}/{{name}}", read=_readable(note), complete={"name": complete})


def _brief() -> Prompt:
    async def brief(topic: Label) -> str:
        """Ask for a brief"""
        return f"Write a brief on {topic}"

    return Prompt(render=_readable(brief))


def _catalog(world: World) -> Server:
    @catalog.tool("fixture.add", deadline_ms=1000, p95_ms=100, per_minute=100)
    async def add(
        left: Annotated[int, Field(description="One number")], right: Annotated[int, Field(description="Another")]
    ) -> Echo:
        """Add two numbers"""
        return Echo("sum", left + right)

    @catalog.tool("fixture.rare", deadline_ms=1000, p95_ms=100, per_minute=1)
    async def rare() -> Echo:
        """Answer once a minute"""
        return Echo("rare", 1)

    @catalog.tool("fixture.note", deadline_ms=10_000, p95_ms=100, per_minute=100, effect=True)
    async def note(text: Text) -> Written:
        """Write a note down"""
        world.notes.append(text)
        return Written(world.notes)

    return Server(name="fixture-catalog", purpose="Tools of the catalog", tools=(add, rare, note))


def _chart() -> Server:
    @chart.tool(errors=(UNAVAILABLE,))
    async def broken_chart(symbol: Label) -> Echo:
        """Fail by number"""
        raise UNAVAILABLE("there is no market", symbol=symbol)

    return Server(name="fixture-chart", purpose="Tools that fail by number", tools=(broken_chart,))


def main() -> int:
    from quantdeck.transports.http import serve_http

    settings = Settings.model_validate_json(sys.argv[1])
    writer = LineWriter(2)
    configure(writer)
    try:
        return asyncio.run(serve_http(settings, fixture_servers(World())))
    finally:
        writer.close()


if __name__ == "__main__":
    sys.exit(main())
