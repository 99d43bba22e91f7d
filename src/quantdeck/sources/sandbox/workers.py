"""Analyses on this machine, each in an engine of its own."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from quantdeck.connections.databases import Databases
from quantdeck.core.errors import Busy, NotConfigured
from quantdeck.settings import Sandbox as Group
from quantdeck.settings import Settings
from quantdeck.sources.sandbox import Analysis, Ask, Language, Report, Sandbox, installed
from quantdeck.sources.sandbox.cage import Level
from quantdeck.sources.sandbox.doors import Calls
from quantdeck.sources.sandbox.failures import timed_out
from quantdeck.sources.sandbox.spares import Spares
from quantdeck.sources.sandbox.trial import tried
from quantdeck.sources.sandbox.worker import Engine, Worker

__all__ = ["Workers", "connect"]

_SETTING = "QUANTDECK_SANDBOX__ISOLATION"
_WAIT_S = 20.0
_AGAIN_S = 60.0
_NAMES: dict[Level, str] = {"full": "landlock+seccomp", "full+jit": "landlock+seccomp", "none": "permissions-only"}


def connect(url: str, settings: Settings, databases: Databases) -> Workers:
    """The adapter."""
    del url, databases
    return Workers(settings.sandbox)


@dataclass(frozen=True, slots=True)
class _Trial:
    level: Level
    why: str = ""  # it is not the full one
    until: float = math.inf


class Workers(Sandbox):
    """See the module."""

    source = "sandbox"

    def __init__(self, settings: Group) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.at_once)
        self._waiting = 0
        self._warm = False
        self._trying = asyncio.Lock()
        self._tried: _Trial | None = None
        self._spares: dict[tuple[Language, Level], Spares] = {}
        self.running: set[int] = set()  # the processes that run an analysis, by their id

    async def ping(self) -> None:
        """Whether analyses run here, and in full isolation."""
        if not installed():
            told = "execute_analysis needs its engines: pip install 'quantdeck[sandbox]'"
            raise NotConfigured(told, source=self.source, setting="quantdeck[sandbox]")
        trial = await self._trial()
        if trial.why:
            raise NotConfigured(_degraded(trial.why), source=self.source, setting=_SETTING)

    async def run(self, analysis: Analysis, ask: Ask, *, full: bool) -> Report:
        trial = await self._trial()
        if trial.why and (full or self._settings.isolation == "full"):
            raise NotConfigured(_degraded(trial.why), source=self.source, setting=_SETTING)
        async with self._slot():
            report = Report(isolation=_NAMES[trial.level])
            begun = time.perf_counter()
            spares = await self._of(analysis.language, trial.level)
            worker = await spares.take()
            report.boot_ms = _since(begun)
            self.running.add(worker.pid)
            try:
                await _bounded(worker, analysis, Calls(ask, report), report)
            finally:
                await _whole(worker.close())
                self.running.discard(worker.pid)
            return report

    async def keep_warm(self) -> None:
        """Try the cage, and have engines ready from now on: TypeScript's at once, Python's once it was asked for."""
        self._warm = True
        trial = await self._trial()
        if not trial.why or self._settings.isolation == "degraded":
            await (await self._of("typescript", trial.level)).full()

    async def close(self) -> None:
        for spares in self._spares.values():
            await spares.close()

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """One of the places at which analyses run. There is a short line for them, and then no more."""
        most, line = self._settings.at_once, self._settings.waiting
        told = f"Busy: {most} analyses run at once and {line} may wait; try again in a moment"
        if self._slots.locked() and self._waiting >= line:
            raise Busy(told, source=self.source, retry_after_s=1)
        self._waiting += 1
        try:
            async with asyncio.timeout(_WAIT_S):
                await self._slots.acquire()
        except TimeoutError:
            raise Busy(told, source=self.source, retry_after_s=5) from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._slots.release()

    async def _trial(self) -> _Trial:
        """How analyses are isolated here: found out once, and again after a while where it was not fully."""
        async with self._trying:
            now = time.monotonic()
            if self._tried is None or now >= self._tried.until:
                level: Level = "full+jit" if self._settings.jit else "full"
                why = await tried(level)
                self._tried = _Trial("none", why, now + _AGAIN_S) if why else _Trial(level)
        return self._tried

    async def _of(self, language: Language, level: Level) -> Spares:
        if (language, level) not in self._spares:
            try:
                engine = await asyncio.to_thread(_engine, language, level)
            except FileNotFoundError as error:
                told = "The engine's program is not where its wheel puts it: pip install 'quantdeck[sandbox]'"
                raise NotConfigured(told, source=self.source, setting="quantdeck[sandbox]") from error
            self._spares.setdefault((language, level), Spares(engine))
        if self._warm:
            self._spares[language, level].keep(self._settings.spares)
        return self._spares[language, level]


def _engine(language: Language, level: Level) -> Engine:
    if language == "python":
        from quantdeck.sources.sandbox import monty

        return monty.engine(level)
    from quantdeck.sources.sandbox import deno

    return deno.engine(level)


async def _bounded(worker: Worker, analysis: Analysis, calls: Calls, report: Report) -> None:
    """Run it within its time, and measure it."""
    begun = time.perf_counter()
    try:
        async with asyncio.timeout(analysis.timeout_ms / 1000), worker.watch.looking():
            await worker.run(analysis, calls, report)
    except TimeoutError:
        worker.watch.look(last=True)
        report.value, report.problem = None, timed_out(analysis.timeout_ms)
    report.duration_ms = _since(begun)
    watch = worker.watch
    report.cpu_ms, report.memory_mb = watch.cpu_ms, watch.memory_mb
    report.process_mb, report.memory_exact = watch.process_mb, watch.exact


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Do it to its end, even when whoever waits is told a second time to stop."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _degraded(why: str) -> str:
    return (
        f"Full isolation cannot be had here: {why}. {_SETTING}=degraded runs analyses with the engine's own "
        "permissions and limits only; over HTTP that is refused even so"
    )


def _since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)
