"""Work that outlives whoever asked for it: tasks of the process, and flights, one for all who ask the same.

Knows nothing of calls. Answers are kept encoded, so that nobody can change what another will read.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

__all__ = ["Entry", "Flights", "Tasks"]

T = TypeVar("T")

_GOODBYE_S = 1.0
"""How long work that is broken off may take to clear up."""


class Tasks:
    """Work that outlives its caller: begun effects, shared flights. Owned by the running process."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has heard it; nobody waiting is no reason for a warning

    async def outliving(
        self, work: Coroutine[Any, Any, T], *, begun: Callable[[], bool], then: Callable[[], None] = lambda: None
    ) -> T:
        """Wait for work that outlives us once it has `begun`; until then it dies with us.

        `then` is done when the work is over, however it ended, before anyone hears of it.
        """
        task = self.start(work)
        task.add_done_callback(lambda _: then())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not begun():
                task.cancel()
            raise

    async def finish(self, within_s: float) -> int:
        """Wait for what was begun, then break off what is left; how many that were. Called on the way out."""
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        while self._running and (left_s := until - loop.time()) > 0:
            await asyncio.wait(tuple(self._running), timeout=left_s)
        left = tuple(self._running)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_GOODBYE_S)
        return len(left)


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored answer. Times are monotonic seconds."""

    data: bytes
    source: str
    asked_at: float
    expires_at: float


@dataclass(slots=True)
class _Flight:
    task: asyncio.Task[Entry] = field(init=False)
    waiters: set[asyncio.Future[None]] = field(default_factory=set)

    def wake(self, _: object = None) -> None:
        """Whoever is woken finds the task done: this is the last that it does, or it never came to do anything."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


def _beginning(tool: str) -> bytes:
    return b"[" + orjson.dumps(tool) + b","


Ask = Callable[[], Awaitable[Entry]]
_Question = tuple[bytes, bool]  # its key, and whether a refresh was asked for


@dataclass(slots=True)
class Flights:
    """What is stored, and what is on its way. `clock` is for tests."""

    max_entries: int = 4096
    max_bytes: int = 64 * 2**20
    clock: Callable[[], float] = time.monotonic
    _stored: OrderedDict[bytes, Entry] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _flying: dict[_Question, _Flight] = field(default_factory=dict)

    def fresh(self, key: bytes) -> Entry | None:
        """The stored answer, if its time has not run out."""
        entry = self._stored.get(key)
        if entry is None:
            return None
        if entry.expires_at <= self.clock():
            self.drop(key)
            return None
        self._stored.move_to_end(key)
        return entry

    def store(self, key: bytes, entry: Entry) -> None:
        """Keep an answer, unless one that was asked for later is there already."""
        kept = self._stored.get(key)
        if kept is not None and kept.asked_at > entry.asked_at:
            return
        self.drop(key)
        if len(key) + len(entry.data) > self.max_bytes:
            return
        self._stored[key] = entry
        self._bytes += len(key) + len(entry.data)
        while self._bytes > self.max_bytes or len(self._stored) > self.max_entries:
            self.drop(next(iter(self._stored)))

    def drop(self, key: bytes) -> None:
        if (entry := self._stored.pop(key, None)) is not None:
            self._bytes -= len(key) + len(entry.data)

    def forget(self, *tools: str) -> None:
        """Drop every answer of these tools, whose names keys begin with: what they report has just been changed."""
        begins = tuple(map(_beginning, tools))
        for key in [key for key in self._stored if key.startswith(begins)]:
            self.drop(key)
        for question in [question for question in self._flying if question[0].startswith(begins)]:
            del self._flying[question]  # those who wait still get its answer; nobody else does

    def holds(self, tool: str) -> bool:
        """Whether there is an answer of this tool, stored or on its way."""
        begins = _beginning(tool)
        return any(key.startswith(begins) for key in (*self._stored, *(key for key, _ in self._flying)))

    async def join(self, key: bytes, ask: Ask, tasks: Tasks, *, refresh: bool) -> Entry:
        """Wait for this question's flight, starting it if there is none.

        A flight is a task of its own: it outlives any one waiter and is cancelled with the last.
        Whoever asks for a refresh joins only another refresh.
        """
        question = (key, refresh)
        flight = self._flying.get((key, True)) or self._flying.get(question)
        if flight is None or flight.task.done():  # one that was broken off before it began never landed
            flight = self._flying[question] = _Flight()
            flight.task = tasks.start(self._fly(question, flight, ask))
            flight.task.add_done_callback(flight.wake)
        # What `shield` would do, with a turn of the loop less: that is half of what a short read takes.
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        flight.waiters.add(waiter)
        try:
            await waiter
            return flight.task.result()
        finally:
            flight.waiters.discard(waiter)
            if not flight.waiters and not flight.task.done():
                self._land(question, flight)
                flight.task.cancel()

    async def _fly(self, question: _Question, flight: _Flight, ask: Ask) -> Entry:
        try:
            entry = await ask()
            if self._flying.get(question) is flight:
                self.store(question[0], entry)
            return entry
        finally:
            self._land(question, flight)
            flight.wake()

    def _land(self, question: _Question, flight: _Flight) -> None:
        for flown in (question, (question[0], True)):
            if self._flying.get(flown) is flight:
                del self._flying[flown]
