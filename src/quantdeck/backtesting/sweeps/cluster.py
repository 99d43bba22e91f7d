"""A Ray cluster, by way of a process of its own: Ray is imported there, and in no process that serves or is asked.

So nothing of Ray's takes our signals, writes to our output or holds us up, and whoever stops waiting ends it.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import CancelledError, Future, IncompleteReadError
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from itertools import count
from typing import Any

from quantdeck.backtesting.processes import ended
from quantdeck.backtesting.sweeps import Outcome, Point, SweepFailedError, Task, Tell
from quantdeck.backtesting.sweeps.batches import Batches
from quantdeck.backtesting.sweeps.frames import framed, receive

__all__ = ["Cluster", "Link", "LostError", "is_installed"]

_PROGRAM = (sys.executable, "-P", "-m", "quantdeck.backtesting.sweeps.ray_driver")

_CONNECT_S = 60.0
_GOODBYE_S = 10.0

_AHEAD = 2
"""Pieces for each processor: one that is computed, and one that is on its way."""


class LostError(RuntimeError):
    """Whoever computed it ended, more often than the cluster tries."""


def is_installed() -> bool:
    """Whether there is Ray; nothing is imported by asking."""
    return find_spec("ray") is not None


class Link:
    """A connection to a cluster. Raises SweepFailedError where there is none, or there is none any more."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._numbers = count()
        self._waiting: dict[int, Future[tuple[list[Outcome], float]]] = {}
        self._failure: str | None = None
        self.processors = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def failed(self) -> bool:
        return self._failure is not None

    @classmethod
    @asynccontextmanager
    async def to(cls, address: str) -> AsyncIterator[Link]:
        """Open while this is entered. Its process hears no Ctrl-C of ours: we tell it when to end."""
        process = await asyncio.create_subprocess_exec(
            *_PROGRAM, address, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
        link = cls(process)
        reading: asyncio.Task[None] | None = None
        try:
            await link._greeted(address)
            reading = asyncio.create_task(link._read())
            yield link
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            else:
                process.kill()  # it may be trying to connect for minutes
            await _let_go(process)

    async def put(self, task: Task) -> int:
        """Send what many batches share; its key."""
        key = next(self._numbers)
        await self._send(await asyncio.to_thread(framed, ("task", key, task)))
        return key

    async def forget(self, key: int) -> None:
        """What was put is needed no more."""
        await self._send(framed(("forget", key)))

    async def outcomes(self, key: int, batch: list[Point]) -> tuple[list[Outcome], float]:
        """What points come to, and how many seconds that took. Whoever stops waiting takes them back."""
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send(framed(("batch", number, key, batch)))
            found: tuple[list[Outcome], float] = await waiting
        except CancelledError:
            with suppress(SweepFailedError, RuntimeError):
                await self._send(framed(("cancel", number)))
            raise
        else:
            return found
        finally:
            self._waiting.pop(number, None)

    async def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        if self._failure is not None:
            raise SweepFailedError(self._failure)
        try:
            self._process.stdin.write(data)  # whole, so that no other's comes between, nor an end of our patience
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise SweepFailedError(_GONE) from error

    async def _greeted(self, address: str) -> None:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(_CONNECT_S):
                kind, said = await receive(self._process.stdout)
        except TimeoutError as error:
            words = f"No Ray cluster answers at {address!r}: connection timeout after {_CONNECT_S:.0f} s"
            raise SweepFailedError(words) from error
        except IncompleteReadError as error:
            raise SweepFailedError(f"No Ray cluster answers at {address!r}: Ray ended the process") from error
        if kind != "ready":
            raise SweepFailedError(said)
        self.processors = said

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while self._failure is None:
                self._hear(*await receive(self._process.stdout))
        except IncompleteReadError:
            self._failure = _GONE
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(SweepFailedError(self._failure))

    def _hear(self, kind: str, said: Any, *rest: Any) -> None:
        if kind == "failed":
            self._failure = said
        elif kind == "processors":
            self.processors = said
        elif (waiting := self._waiting.get(said)) is not None and not waiting.done():
            if kind == "told":
                waiting.set_result((rest[0], rest[1]))
            else:
                waiting.set_exception(LostError())


_GONE = "The connection to the Ray cluster was lost: its process ended"


async def _let_go(process: Process) -> None:
    """It is let go of, and killed where it does not go."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        with suppress(TimeoutError):  # it hangs
            async with asyncio.timeout(_GOODBYE_S):
                await process.wait()
    finally:
        await ended(process)


class Cluster:
    """`address` is what Ray knows one by: `auto`, `host:6379`, `ray://host:10001`, or `local` for one of its own."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def run(self, task: Task, batches: Batches, tell: Tell) -> None:
        """Until nothing is left. Whoever stops waiting takes back what is on its way."""
        async with Link.to(self._address) as link:
            key = await link.put(task)
            flying: dict[asyncio.Task[tuple[list[Outcome], float]], list[Point]] = {}
            try:
                while batches or flying:
                    batches.runners = max(link.processors, 1)
                    while len(flying) < _AHEAD * batches.runners and (batch := batches.take()):
                        flying[asyncio.create_task(link.outcomes(key, batch))] = batch
                    done, _ = await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
                    for one in done:
                        await _landed(one, flying.pop(one), batches, tell)
            finally:
                for one in flying:
                    one.cancel()
                await asyncio.gather(*flying, return_exceptions=True)


async def _landed(
    flight: asyncio.Task[tuple[list[Outcome], float]], batch: list[Point], batches: Batches, tell: Tell
) -> None:
    try:
        outcomes, took_s = await flight
    except LostError:
        tell(batches.lost(batch))
    else:
        batches.done(len(batch), took_s)
        tell(outcomes)
