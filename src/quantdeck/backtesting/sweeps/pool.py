"""A sweep on the processors of this machine: so many processes, each with the bars of its own."""

from __future__ import annotations

import asyncio
import sys
from asyncio import IncompleteReadError, TaskGroup
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic

from quantdeck.backtesting.processes import ended
from quantdeck.backtesting.sweeps import SweepFailedError, Task, Tell
from quantdeck.backtesting.sweeps.batches import Batches
from quantdeck.backtesting.sweeps.frames import framed, receive, send

__all__ = ["Pool"]

_PROGRAM = (sys.executable, "-P", "-m", "quantdeck.backtesting.sweeps.worker")

_STILLBORN = 3
"""So many processes in a row that end before they can do anything are no accident."""

_ENDED = (IncompleteReadError, BrokenPipeError, ConnectionResetError)


class Pool:
    """A process that ends before its time is replaced, and what it was doing is done again by another."""

    def __init__(self, processes: int, program: Sequence[str] = _PROGRAM) -> None:
        self.processes, self._program = processes, program
        self.running: set[int] = set()  # the processes that there are, by their id

    async def run(self, task: Task, batches: Batches, tell: Tell) -> None:
        """Until nothing is left. Whoever stops waiting ends all processes."""
        batches.runners = self.processes
        data = await asyncio.to_thread(framed, task)
        try:
            async with TaskGroup() as slots:
                for _ in range(min(self.processes, len(batches))):
                    slots.create_task(self._slot(data, batches, tell))
        except BaseExceptionGroup as group:  # of which one is enough to be told
            raise group.exceptions[0] from None

    async def _slot(self, data: bytes, batches: Batches, tell: Tell) -> None:
        stillborn = 0
        while batches:
            began = await self._life(data, batches, tell)
            stillborn = 0 if began else stillborn + 1
            if stillborn == _STILLBORN:
                raise SweepFailedError(f"Processes end before they can compute anything, {_STILLBORN} in a row")

    async def _life(self, data: bytes, batches: Batches, tell: Tell) -> bool:
        """One process, from its beginning to its end, or that of the work; whether it ever was ready."""
        async with self._process() as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                await send(process.stdin, data)
                await receive(process.stdout)
            except _ENDED:
                return False
            while batch := batches.take():
                begun = monotonic()
                try:
                    await send(process.stdin, framed(batch))
                    outcomes = await receive(process.stdout)
                except _ENDED:
                    if given_up := batches.lost(batch):
                        tell(given_up)
                    return True
                batches.done(len(batch), monotonic() - begun)
                tell(outcomes)
        return True

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[Process]:
        """One that is gone when this is left. It is in a session of its own: a Ctrl-C is for us to hear, not for it."""
        process = await asyncio.create_subprocess_exec(
            *self._program, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
        self.running.add(process.pid)
        try:
            yield process
        finally:
            try:
                await ended(process)
            finally:
                self.running.discard(process.pid)
