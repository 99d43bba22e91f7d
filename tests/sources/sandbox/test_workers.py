"""How many run, what is ready, what is left, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from quantdeck.core.errors import Busy
from quantdeck.sources.sandbox import Analysis, Language
from quantdeck.sources.sandbox.cage import ENVIRONMENT
from quantdeck.sources.sandbox.workers import Workers
from tests.support.sandbox import descendants, looked_after, nobody, open_files

NO_LANDLOCK = Path(__file__).parents[2] / "support" / "no_landlock.py"
WAITS = Analysis("return await pyth.getSymbols()", timeout_ms=20_000)


class Gate:
    """A server that answers when it is told to, and says how many have asked."""

    def __init__(self, expected: int) -> None:
        self.asked, self._expected = 0, expected
        self.all_here, self.open = asyncio.Event(), asyncio.Event()

    async def __call__(self, method, arguments):
        self.asked += 1
        if self.asked == self._expected:
            self.all_here.set()
        await self.open.wait()
        return b"1"


async def test_four_run_at_once_some_wait_and_more_are_told_that_it_is_busy():
    async with looked_after(at_once=2, waiting=1) as looked:
        gate = Gate(2)
        tasks = [asyncio.create_task(looked.workers.run(WAITS, gate, full=True)) for _ in range(3)]
        await gate.all_here.wait()
        with pytest.raises(Busy) as refused:
            await looked.workers.run(WAITS, nobody, full=True)
        assert refused.value.message == "Busy: 2 analyses run at once and 1 may wait; try again in a moment"
        assert gate.asked == 2
        gate.open.set()
        assert [report.value for report in await asyncio.gather(*tasks)] == [1, 1, 1]


async def test_who_stops_waiting_leaves_nothing():
    async with looked_after() as looked:
        await looked.value("return 1")
        files, processes = len(open_files()), descendants()
        gate = Gate(1)
        task = asyncio.create_task(looked.workers.run(WAITS, gate, full=True))
        await gate.all_here.wait()
        assert descendants() > processes
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not looked.workers.running
        assert descendants() == processes
        assert len(open_files()) == files
        assert await looked.value("return 2") == 2


async def test_spares_are_ready_and_none_is_used_twice():
    before = descendants()
    async with looked_after(spares=2) as looked:
        workers = looked.workers
        await workers.keep_warm()
        ready = descendants() - before
        assert len(ready) == 2
        used = set()

        async def ask(method, arguments):
            used.update(workers.running)
            return b"1"

        first = await workers.run(WAITS, ask, full=True)
        second = await workers.run(WAITS, ask, full=True)
        assert first.value == second.value == 1
        assert used == ready  # both were there before anybody asked, and each served once


async def test_a_spare_that_has_died_is_nobodys():
    before = descendants()
    async with looked_after(spares=1) as looked:
        await looked.workers.keep_warm()
        (dead,) = descendants() - before
        os.kill(dead, signal.SIGKILL)
        with suppress(ChildProcessError):  # somebody has heard of its end already
            await asyncio.to_thread(os.waitid, os.P_PID, dead, os.WEXITED | os.WNOWAIT)
        used = set()

        async def ask(method, arguments):
            used.update(looked.workers.running)
            return b"1"

        assert (await looked.workers.run(WAITS, ask, full=True)).value == 1
        assert dead not in used


async def test_closing_ends_the_spares():
    before = descendants()
    async with looked_after(spares=2) as looked:
        await looked.workers.keep_warm()
        assert len(descendants() - before) == 2
    assert descendants() == before


DEGRADED = """
import asyncio, json
from quantdeck.core.errors import NotConfigured
from quantdeck.settings import Sandbox
from quantdeck.sources.sandbox import Analysis
from quantdeck.sources.sandbox.workers import Workers

async def never(method, arguments):
    await asyncio.Event().wait()

async def main():
    for isolation in ("full", "degraded"):
        workers = Workers(Sandbox(isolation=isolation, spares=0))
        try:
            await workers.ping()
        except NotConfigured as error:
            print(json.dumps([isolation, "ping", error.message]))
        for full in (True, False):
            for code, language in json.loads(CASES):
                try:
                    timeout_ms = 600 if code == "for (;;) {}" else 20_000
                    report = await workers.run(Analysis(code, language, timeout_ms), never, full=full)
                    problem = report.problem
                    print(json.dumps([isolation, full, report.isolation, problem.kind if problem else report.value]))
                except NotConfigured as error:
                    print(json.dumps([isolation, full, error.message, None]))
        await workers.close()

asyncio.run(main())
"""

CASES = {
    ("return 1 + 1", "typescript"): 2,
    ("1 + 1", "python"): 2,
    ("return await import('node:fs')", "typescript"): "security",
    ("for (;;) {}", "typescript"): "timeout",
    ("const a = []; for (;;) a.push(new Uint8Array(8 << 20).fill(1))", "typescript"): "memory",
    ("open('/etc/passwd')", "python"): "security",
}


def test_without_landlock_nothing_runs_unless_it_is_asked_for_and_then_the_engines_own_limits_hold():
    code = f"CASES = {json.dumps(list(CASES))!r}\n{DEGRADED}"
    ran = subprocess.run([sys.executable, str(NO_LANDLOCK), "-c", code], capture_output=True, text=True, check=True)
    pings: list[tuple[Any, ...]] = []
    runs: list[tuple[Any, ...]] = []
    for isolation, what, *told in map(json.loads, ran.stdout.splitlines()):
        (pings if what == "ping" else runs).append((isolation, what, *told))
    assert len(pings) == 2
    for *_, message in pings:
        assert "this kernel has no Landlock" in message
    for isolation, full, told, came_to in runs:
        if isolation == "degraded" and not full:
            assert told == "permissions-only"
        else:
            assert "QUANTDECK_SANDBOX__ISOLATION=degraded" in told
            assert came_to is None
    assert [came_to for *_, came_to in runs[-len(CASES) :]] == list(CASES.values())


def test_nothing_can_be_kept_below_the_home_of_an_engine():
    """Deno keeps caches where it can, and what one analysis leaves there another would find."""
    with pytest.raises(FileNotFoundError):  # even for root
        Path(ENVIRONMENT["HOME"], "x").mkdir(parents=True)


async def test_with_a_jit_the_same_holds_and_arithmetic_is_faster():
    async with looked_after(jit=True) as looked:
        assert await looked.value("return 6 * 7") == 42
        assert await looked.kind("return eval('1')") == "security"
        assert await looked.kind("return new WebAssembly.Memory({ initial: 16384 })") == "security"
        assert await looked.kind("const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))") == "memory"


HOSTILE: tuple[tuple[Language, str, str, int], ...] = (
    ("typescript", "return eval('1')", "security", 5000),
    ("typescript", "for (;;) {}", "timeout", 100),
    ("typescript", "const a = []; for (;;) a.push(new Uint8Array(8 << 20).fill(1))", "memory", 5000),
    ("typescript", "for (;;) console.log('x'.repeat(1e4))", "timeout", 150),
    ("typescript", "await Promise.all(Array.from({ length: 200 }, () => pyth.getSymbols()))", "runtime", 5000),
    ("typescript", "let b: = 3", "syntax", 5000),
    ("python", "x = 'x' * 2 ** 32", "memory", 5000),
    ("python", "open('/etc/passwd')", "security", 5000),
    ("typescript", "return '" + "[" * 1000 + "'.repeat(1000)", "runtime", 5000),
    ("typescript", "process.exit(0)", "security", 5000),
)

RUNS = int(os.environ.get("QUANTDECK_HOSTILE_RUNS", "20"))
"""1,000 are an option: they take two minutes."""


@pytest.mark.timeout(1200)
async def test_many_hostile_analyses_in_a_row_leave_no_process_file_or_memory(tmp_path: Path):
    async with looked_after(spares=1) as looked:
        workers = looked.workers
        await workers.keep_warm()
        for language, code, _, timeout_ms in HOSTILE:  # what is loaded on first use is no leak
            await workers.run(Analysis(code, language, timeout_ms), nobody, full=True)
        await ready(workers)
        files, processes, held_kb, tasks = (
            len(open_files()),
            len(descendants()),
            resident_kb(),
            len(asyncio.all_tasks()),
        )
        temporary = set(os.listdir("/tmp"))  # noqa: S108, PTH208 - where a leak would show
        for number in range(RUNS):
            language, code, kind, timeout_ms = HOSTILE[number % len(HOSTILE)]
            report = await workers.run(Analysis(code, language, timeout_ms), nobody, full=True)
            assert report.problem is not None, code
            assert report.problem.kind == kind, (code, report.problem)
        await ready(workers)
        assert (await workers.run(Analysis("return 6 * 7"), nobody, full=True)).value == 42
        await ready(workers)
        assert len(descendants()) == processes
        assert len(open_files()) == files
        assert len(asyncio.all_tasks()) == tasks
        assert resident_kb() - held_kb < 8 * 1024
        left = {name for name in set(os.listdir("/tmp")) - temporary if name.startswith("quantdeck-trial")}  # noqa: S108, PTH208
        assert not left


async def ready(workers: Workers) -> None:
    """When all spares are."""
    for spares in workers._spares.values():
        await spares.full()


def resident_kb() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


async def test_the_trial_is_made_once():
    async with looked_after() as looked:
        await asyncio.gather(looked.workers.ping(), looked.workers.ping())
        trial = looked.workers._tried
        await looked.workers.ping()
        assert trial is not None
        assert looked.workers._tried is trial
        assert isinstance(looked.workers, Workers)


async def test_an_engine_of_python_is_kept_ready_once_it_has_been_asked_for():
    async with looked_after(spares=1) as looked:
        await looked.workers.keep_warm()
        assert set(looked.workers._spares) == {("typescript", "full")}
        assert (await looked.workers.run(Analysis("6 * 7", "python"), nobody, full=True)).value == 42
        await looked.workers._spares["python", "full"].full()
        cold = looked.workers._spares["python", "full"]._ready[0].pid
        used = set()

        async def ask(method, arguments):
            used.update(looked.workers.running)
            return b"1"

        report = await looked.workers.run(Analysis("await pyth.get_symbols()", "python"), ask, full=True)
        assert (report.value, used) == (1, {cold})
