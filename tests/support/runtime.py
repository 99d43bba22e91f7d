"""A program in small: the pipeline with a source, a coordination and a log that do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from quantdeck.core.call import Call, Caller, Runtime, chain
from quantdeck.core.clock import Clock
from quantdeck.core.contract import Contract, Source
from quantdeck.core.limits import Grant
from quantdeck.core.observe import Observer
from quantdeck.core.once import Conflict, Journal, Recorded, Slot
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.flights import Flights
from quantdeck.observability import calls
from quantdeck.observability.metrics import Metrics
from quantdeck.sources.coordination.embedded import SlidingWindows
from tests.support.clock import Ticks

__all__ = ["ALICE", "BOB", "Coordinated", "Desk", "Gate", "Notes", "Program", "body", "error_of", "turns"]

ALICE = Caller("alice", account="north")
BOB = Caller("bob", account="south")


class Gate:
    """Somewhere to wait: open until a test shuts it. It says when somebody has come and who gave up."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.cancelled = 0
        self._open = asyncio.Event()
        self._open.set()

    def shut(self) -> Gate:
        self._open.clear()
        return self

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        self.arrived.set()
        try:
            await self._open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


class Desk(Source):
    """A source that counts what it is asked, waits at a gate and fails when told to."""

    def __init__(self, source: str = "fake", journal: Journal | None = None) -> None:
        self.source = source
        self.journal = journal
        self.asked = 0
        self.finished = 0
        self.failure: BaseException | None = None
        self.gate = Gate()
        self.mark = 0

    async def revision(self) -> int:
        return self.mark

    async def ask(self) -> int:
        """Which question this was, counted from 1."""
        self.asked += 1
        number = self.asked
        await self.gate.passed()
        if self.failure is not None:
            raise self.failure
        self.finished += 1
        return number


class Notes(Source):
    """A second source, for tools that have two."""

    source = "notes"


class _Journal:
    """Keys in memory, for tests that are about something else."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._answers: dict[tuple[str, str], tuple[str, bytes]] = {}

    async def run(self, slot: Slot, effect: Callable[[], Awaitable[bytes]]) -> Recorded:
        await self._gate.passed()
        known = self._answers.get((slot.scope, slot.key))
        if known is None:
            answer = await effect()
            self._answers[slot.scope, slot.key] = (slot.fingerprint, answer)
            return Recorded(answer, replayed=False)
        if known[0] != slot.fingerprint:
            raise Conflict(slot)
        return Recorded(known[1], replayed=True)


class Coordinated:
    """The port `coordination` in memory; `shared` makes it a store that replicas have in common."""

    def __init__(self, ticks: Ticks, *, shared: bool = False) -> None:
        self.taking = Gate()
        self.journaling = Gate()
        self.journal: Journal = _Journal(self.journaling)
        self.shared = shared
        self.stored: dict[str, tuple[bytes, float]] = {}
        self._ticks = ticks
        self._windows = SlidingWindows(clock=ticks)

    async def take(self, client: str, tool: str, per_minute: int) -> Grant:
        await self.taking.passed()
        return self._windows.take(client, tool, per_minute)

    async def get(self, key: str) -> tuple[bytes, float] | None:
        value, until = self.stored.get(key, (b"", 0.0))
        left_s = until - self._ticks()
        return (value, left_s) if left_s > 0 else None

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        self.stored[key] = (value, self._ticks() + ttl_s)


@dataclass
class Program:
    """What `app` composes, out of fakes."""

    ticks: Ticks = field(default_factory=Ticks)
    desk: Desk = field(default_factory=Desk)
    clock: Clock = field(default_factory=Clock)
    coordination: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    runtime: Runtime = field(init=False)

    def __post_init__(self) -> None:
        self.coordination = self.coordination or Coordinated(self.ticks)
        sources: dict[type[Source], Source] = {Desk: self.desk, Notes: Notes()}
        self.runtime = Runtime(
            clock=self.clock,
            coordination=self.coordination,
            source=sources.__getitem__,
            observer=Observer(calls.to(self.metrics.count, self.events.append), calls.span),
            flights=Flights(clock=self.ticks),
            options=self.options,
        )

    async def call(
        self, tool: Contract, arguments: Mapping[str, Any] | None = None, *, caller: Caller = ALICE, **facts: Any
    ) -> Any:
        """One call through the whole pipeline: an `Answer` or an `RpcFailure`."""
        call = Call(tool, arguments or {}, self.runtime, caller, "test-server", **facts)
        return await chain(tool)(call)

    def begin(self, tool: Contract, arguments: Mapping[str, Any] | None = None, **facts: Any) -> asyncio.Task[Any]:
        """The same, not waited for."""
        return asyncio.create_task(self.call(tool, arguments, **facts))


async def turns(count: int = 20) -> None:
    """Let every task that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


def body(outcome: Answer | RpcFailure) -> Any:
    """The answer as a client reads it."""
    assert isinstance(outcome, Answer), outcome
    return orjson.loads(outcome.encoded)


def error_of(outcome: Answer | RpcFailure) -> tuple[str, str, dict[str, Any]]:
    """Code, sentence and details of a failure, whatever its spec."""
    if isinstance(outcome, RpcFailure):
        return str(outcome.number), outcome.message, outcome.data or {}
    assert outcome.is_error, outcome
    told = body(outcome)
    told = told["error"] if isinstance(told.get("error"), dict) else told
    details = told.get("details") or told.get("data") or {}
    return str(outcome.code), told["message"], details
