"""Backtests on this machine: tiny ones at once, small ones in a thread, large ones in processes that can be killed."""

from __future__ import annotations

import asyncio
import pickle
import sys
from asyncio import IncompleteReadError, StreamReader
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import CancelScope

from quantdeck.backtesting.engine import Backtest, Metrics
from quantdeck.backtesting.processes import ended
from quantdeck.backtesting.worker import Work, Worker
from quantdeck.connections.databases import Databases
from quantdeck.core.errors import QueryFailed
from quantdeck.domain.strategy_specs import Computation, RunnableSpec
from quantdeck.settings import Settings
from quantdeck.sources.backtester import Backtester, Job, Tell, nobody

__all__ = ["SMALL", "InProcess", "connect", "values"]

TINY = 20_000
"""Values to compute before others on the event loop notice; going to a thread and back takes half as long."""

SMALL = 2_000_000
"""Values to compute that a thread does in well under a tenth of a second; a process takes longer to start."""

_STOPS = 50
"""As many values is looking for stops worth, at each bar."""

_PIECE = 2**20

_NAME = "quantdeck"


def connect(url: str, settings: Settings, databases: Databases) -> InProcess:
    """The adapter."""
    del url, databases
    return InProcess(settings.backtests.processes, source="demo" if settings.is_demo else _NAME)


class InProcess(Backtester):
    """See the module."""

    def __init__(self, processes: int, source: str = _NAME) -> None:
        self.source = source
        self._slots = asyncio.Semaphore(processes)
        self.about = f"this machine, {processes} processes at a time for large ones"
        self.running: set[int] = set()  # the processes that there are, by their id

    async def _run(self, job: Job, tell: Tell) -> Metrics:
        work = _work(job)
        metrics: Metrics = await self.done(work, values(work.spec, len(work.bars)), tell)
        return metrics

    async def _whole(self, job: Job, tell: Tell) -> Backtest:
        work = _work(job, whole=True)
        made: Backtest = await self.done(work, values(work.spec, len(work.bars)), tell)
        return made

    async def done(self, work: Worker, many: int, tell: Tell = nobody) -> Any:
        """What a piece of work comes to for which so many values are computed."""
        if many <= TINY:
            return work.result()
        if many <= SMALL:
            return await asyncio.to_thread(work.result)
        async with self._slots:
            data = await asyncio.to_thread(pickle.dumps, work, 5)
            async with self._process() as process:
                return await _told(process, data, tell)

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[Process]:
        """One that is gone when nobody waits for it any more."""
        program = (sys.executable, "-P", "-m", "quantdeck.backtesting.worker")
        with CancelScope(shield=True):  # the SDK's cancellations come again at every await, and nobody would end it
            process = await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        self.running.add(process.pid)
        try:
            yield process
        finally:
            try:
                with CancelScope(shield=True):
                    await ended(process)
            finally:
                self.running.discard(process.pid)


def _work(job: Job, *, whole: bool = False) -> Work:
    return Work(job.spec.instantiate(job.parameters), job.bars, job.terms, whole)


def values(spec: RunnableSpec, bars: int) -> int:
    """How many values there are to compute, roughly."""
    stops = _STOPS * any(rule.indicator is None for rule in spec.exit)
    return bars * (1 + stops + sum(map(_weight, spec.computations)))


def _weight(one: Computation) -> int:
    if one.type == "CCI":  # the one whose every window is gone through
        return int(one.numbers["period"])
    return {"KAMA": 10, "FRAMA": 10, "PARABOLIC_SAR": 40}.get(one.type, 1)


async def _told(process: Process, data: bytes, tell: Tell) -> Any:
    """What it comes to. The process says nothing before it has been told everything, so neither waits for the other."""
    assert process.stdout is not None
    await _feed(process, data)
    while True:
        kind, said = await _frame(process.stdout)
        if kind == "done":
            await tell(said)
        elif kind == "told":
            return said
        else:
            raise QueryFailed(f"The backtest failed with {said}; its process was ended", source=_NAME)


async def _frame(out: StreamReader) -> tuple[str, Any]:
    try:
        size = int.from_bytes(await out.readexactly(4), "big")
        kind, said = pickle.loads(await out.readexactly(size))  # noqa: S301 - it comes from the process started here
    except IncompleteReadError as error:
        said = (
            "The process of the backtest ended before it had a result; try again, with fewer bars if it does so again"
        )
        raise QueryFailed(said, source=_NAME) from error
    return kind, said


async def _feed(process: Process, data: bytes) -> None:
    assert process.stdin is not None
    view = memoryview(data)
    try:
        for begin in range(0, len(view), _PIECE):
            process.stdin.write(view[begin : begin + _PIECE])
            await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it ended before it was told everything, which who listens to it hears
