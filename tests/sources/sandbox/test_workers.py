"""How many run, what is ready, what is left, and what is refused."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from quantdeck.core.errors import Busy, NotConfigured
from quantdeck.sources.sandbox import Analysis, Language, cage
from quantdeck.sources.sandbox.workers import Workers
from tests.support.sandbox import descendants, looked_after, never, nobody, open_files

LANGUAGES: tuple[Language, ...] = ("typescript", "python")
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
    async with looked_after(spares=2) as looked:
        workers = looked.workers
        await workers.keep_warm()
        ready = descendants()
        assert len(ready) == 2
        used = set()

        async def ask(method, arguments):
            used.update(workers.running)
            return b"1"

        first = await workers.run(WAITS, ask, full=True)
        second = await workers.run(WAITS, ask, full=True)
        assert first.value == second.value == 1
        assert used == ready  # both were there before anybody asked, and each served once
        assert max(first.boot_ms, second.boot_ms) < 50


async def test_a_spare_that_has_died_is_nobodys():
    async with looked_after(spares=1) as looked:
        await looked.workers.keep_warm()
        (dead,) = descendants()
        os.kill(dead, signal.SIGKILL)
        os.waitid(os.P_PID, dead, os.WEXITED | os.WNOWAIT)
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


async def test_where_full_isolation_is_not_to_be_had_nothing_runs_unless_it_is_asked_for(monkeypatch, tmp_path: Path):
    """A kernel without Landlock, as far as the launcher can tell."""
    launcher = tmp_path / "launcher.py"
    real = Path(cage.__file__).with_name("launcher.py").read_text()
    launcher.write_text(real.replace("version = _call(444, 0, 0, 1)", "version = 0"))
    monkeypatch.setattr(cage, "_LAUNCHER", launcher)
    async with looked_after() as looked:
        with pytest.raises(NotConfigured) as refused:
            await looked.workers.run(Analysis("return 1"), nobody, full=False)
        assert "this kernel has no Landlock" in refused.value.message
        assert "QUANTDECK_SANDBOX__ISOLATION=degraded" in refused.value.message
        with pytest.raises(NotConfigured):
            await looked.workers.ping()
    async with looked_after(isolation="degraded") as looked:
        for language in LANGUAGES:
            report = await looked.workers.run(Analysis("return 1 + 1", language), nobody, full=False)
            assert (report.value, report.isolation) == (2, "permissions-only")
        with pytest.raises(NotConfigured):
            await looked.workers.run(Analysis("return 1"), nobody, full=True)


async def test_the_engines_own_permissions_hold_in_the_degraded_level_too(monkeypatch, tmp_path: Path):
    launcher = tmp_path / "launcher.py"
    real = Path(cage.__file__).with_name("launcher.py").read_text()
    launcher.write_text(real.replace("version = _call(444, 0, 0, 1)", "version = 0"))
    monkeypatch.setattr(cage, "_LAUNCHER", launcher)
    async with looked_after(isolation="degraded") as looked:
        hostile = {"return await import('node:fs')": "security", "for (;;) {}": "timeout"}
        for code, kind in hostile.items():
            report = await looked.workers.run(Analysis(code, timeout_ms=400), never, full=False)
            assert report.problem is not None
            assert report.problem.kind == kind
        report = await looked.workers.run(Analysis("open('/etc/passwd')", "python"), never, full=False)
        assert report.problem is not None
        assert report.problem.kind == "security"


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
        await workers._spares["typescript"].full()
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
        await workers._spares["typescript"].full()
        assert (await workers.run(Analysis("return 6 * 7"), nobody, full=True)).value == 42
        await workers._spares["typescript"].full()
        assert len(descendants()) == processes
        assert len(open_files()) == files
        assert len(asyncio.all_tasks()) == tasks
        assert resident_kb() - held_kb < 8 * 1024
        left = {name for name in set(os.listdir("/tmp")) - temporary if name.startswith("quantdeck-trial")}  # noqa: S108, PTH208
        assert not left


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
