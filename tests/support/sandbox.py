"""A sandbox that is looked after: whatever an analysis did, nothing of it may be left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from quantdeck.settings import Sandbox as Group
from quantdeck.sources.sandbox import Analysis, Ask, RefusedError, Report
from quantdeck.sources.sandbox.workers import Workers

__all__ = ["CANARY", "Looked", "descendants", "looked_after", "nobody", "open_files"]

CANARY = "canary-5b1f0e7c-that-no-analysis-may-know"
"""In the server's environment while these tests run."""

CORRECT = {"typescript": "return 6 * 7", "python": "6 * 7"}


_OFTEN = 4
"""Mostly the next analysis is the next case, which has its own idea of what is right; so often it is a plain one."""


_OF_A_DATABASE = ("postgres", "pg_ctl", "influxd")


async def nobody(method: str, arguments: list[Any]) -> bytes:
    """Answers any call by saying what was asked."""
    return orjson.dumps({"method": method, "arguments": arguments})


def descendants() -> set[int]:
    """All processes below this one, those that have ended and not been waited for included.

    Not those of a test's database, which come and go as they like.
    """
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, told = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name in _OF_A_DATABASE:
            continue
        parent = int(told.split()[1])
        children.setdefault(parent, []).append(int(folder.name))
    found, looked = set[int](), [os.getpid()]
    while looked:
        below = children.get(looked.pop(), [])
        found.update(below)
        looked += below
    return found


def open_files() -> dict[str, str]:
    """What this process holds open, by number."""
    held = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            held[link.name] = str(link.readlink())
        except OSError:
            continue
    return held


@dataclass
class Looked:
    """Runs an analysis, sees that nothing is left of it and that it knew no secret, and that the next one is right."""

    workers: Workers
    ran: int = 0
    reports: list[Report] = field(default_factory=list)

    async def __call__(
        self, code: str, language: Any = "typescript", *, ask: Ask = nobody, timeout_ms: int = 20_000, **said: Any
    ) -> Report:
        before = len(open_files())
        report = await self._report(Analysis(code, language, timeout_ms, **said), ask)
        assert not self.workers.running, "a worker outlived its analysis"
        assert len(open_files()) <= before, open_files()
        if self.ran % _OFTEN == 0 or (report.problem is not None and report.problem.kind in ("memory", "timeout")):
            following = await self._report(Analysis(CORRECT[language], language), nobody)
            assert (following.value, following.problem) == (42, None)
        return report

    async def _report(self, analysis: Analysis, ask: Ask) -> Report:
        before = descendants()
        pids: set[int] = set()

        async def asked(method: str, arguments: list[Any]) -> bytes:
            pids.update(self.workers.running)
            return await ask(method, arguments)

        report = await self.workers.run(analysis, asked, full=True)
        assert CANARY not in repr(report)
        assert not descendants() - before, "a process was left"
        self.ran += 1
        return report

    async def kind(self, code: str, language: Any = "typescript", **said: Any) -> str | None:
        """What kind of problem it had, and none else."""
        report = await self(code, language, **said)
        return None if report.problem is None else report.problem.kind

    async def value(self, code: str, language: Any = "typescript", **said: Any) -> Any:
        """What it returned; it has to return."""
        report = await self(code, language, **said)
        assert report.problem is None, report.problem
        return report.value


@asynccontextmanager
async def looked_after(**said: Any) -> AsyncIterator[Looked]:
    """A sandbox of its own, without spares unless asked."""
    workers = Workers(Group(**{"spares": 0, **said}))
    try:
        yield Looked(workers)
    finally:
        await workers.close()


def refusing(code: str, message: str) -> Ask:
    """A server that refuses every call."""

    async def ask(method: str, arguments: list[Any]) -> bytes:
        raise RefusedError(code, message)

    return ask


async def never(method: str, arguments: list[Any]) -> bytes:
    """A server that does not answer."""
    await asyncio.Event().wait()
    raise AssertionError
