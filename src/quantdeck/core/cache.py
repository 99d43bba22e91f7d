"""The answer cache: bounded, in process, one flight per question.

Answers are kept encoded, so a hit costs a copy and nobody can change what another will read.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from quantdeck.core.wire import canonical, encode

if TYPE_CHECKING:
    from quantdeck.core.call import Call, Proceed
    from quantdeck.core.contract import Contract

__all__ = ["Entry", "Flights", "cache"]


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
    waiters: int = 0


@dataclass(slots=True)
class Flights:
    """What is stored, and what is on its way. `clock` is for tests."""

    max_entries: int = 4096
    max_bytes: int = 64 * 2**20
    clock: Callable[[], float] = time.monotonic
    _stored: OrderedDict[bytes, Entry] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _flying: dict[tuple[bytes, bool], _Flight] = field(default_factory=dict)

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
        size_bytes = len(key) + len(entry.data)
        if size_bytes > self.max_bytes:
            return
        self._stored[key] = entry
        self._bytes += size_bytes
        while self._bytes > self.max_bytes or len(self._stored) > self.max_entries:
            self.drop(next(iter(self._stored)))

    def drop(self, key: bytes) -> None:
        entry = self._stored.pop(key, None)
        if entry is not None:
            self._bytes -= len(key) + len(entry.data)

    def forget(self, tool: str) -> None:
        """Drop every answer of one tool: something it reports has just been changed here."""
        for key in [key for key in self._stored if orjson.loads(key)[0] == tool]:
            self.drop(key)
        for slot in [slot for slot in self._flying if orjson.loads(slot[0])[0] == tool]:
            del self._flying[slot]  # those who wait still get its answer; nobody else does

    async def join(self, key: bytes, call: Call, ask: Callable[[], Any]) -> Entry:
        """Wait for this question's flight, starting it if there is none.

        A flight is a task of its own: it outlives any one waiter and is cancelled with the last.
        Whoever asks for a refresh joins only another refresh.
        """
        slot = (key, call.refresh)
        flight = self._flying.get((key, True)) or self._flying.get(slot)
        if flight is None:
            flight = self._flying[slot] = _Flight()
            flight.task = call.runtime.tasks.start(self._fly(slot, flight, ask))
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                self._land(slot, flight)
                flight.task.cancel()

    async def _fly(self, slot: tuple[bytes, bool], flight: _Flight, ask: Callable[[], Any]) -> Entry:
        try:
            entry: Entry = await ask()
            if self._flying.get(slot) is flight:
                self.store(slot[0], entry)
            return entry
        finally:
            self._land(slot, flight)

    def _land(self, slot: tuple[bytes, bool], flight: _Flight) -> None:
        for key in (slot, (slot[0], True)):
            if self._flying.get(key) is flight:
                del self._flying[key]


def cache(contract: Contract) -> Callable[[Proceed], Proceed] | None:
    """Answer a question again without asking its source, while the spec's time to live lasts."""
    policy = contract.policy
    if policy.cache_s is None or policy.effect:
        return None

    def wrap(proceed: Proceed) -> Proceed:
        async def cached(call: Call) -> Any:
            ttl_s = call.runtime.cache_ttl_s.get(contract.name, policy.cache_s)
            if not ttl_s:
                return await proceed(call)
            key, flights = _key(call), call.runtime.flights
            entry = None if call.refresh else flights.fresh(key)
            call.cached = entry is not None
            if entry is None:
                entry = await flights.join(key, call, lambda: _ask(call, proceed, key, ttl_s))
            else:
                call.ttl_left_s = entry.expires_at - flights.clock()
            call.source = entry.source
            return orjson.Fragment(entry.data)

        return cached

    return wrap


async def _ask(call: Call, proceed: Proceed, key: bytes, ttl_s: float) -> Entry:
    clock, shared = call.runtime.flights.clock, call.runtime.coordination
    asked_at = clock()
    name = sha256(key).hexdigest()
    if shared.shared and not call.refresh and (found := await shared.get(name)) is not None:
        data, left_s = found
        source, _, data = data.partition(b"\n")
        call.cached, call.ttl_left_s = True, left_s
        return Entry(data, source.decode(), asked_at, clock() + left_s)
    data = encode(await proceed(call))
    if shared.shared:
        await shared.put(name, call.source.encode() + b"\n" + data, ttl_s)
    return Entry(data, call.source, asked_at, clock() + ttl_s)


def _key(call: Call) -> bytes:
    """Tool, arguments, whatever else the answer depends on, and the world's time where it stands."""
    varies = {name: _VARIES[name](call) for name in call.contract.policy.vary}
    instant = call.now if call.runtime.clock.fixed else None
    return canonical([call.contract.name, call.values, varies, instant])


def _upstream(call: Call) -> str | None:
    token = call.upstream_token
    return None if token is None else sha256(token.encode()).hexdigest()


_VARIES: dict[str, Callable[[Call], str | None]] = {
    "account": lambda call: call.caller.account,
    "caller": lambda call: call.caller.id,
    "upstream": _upstream,
}
