"""A process of an engine, from outside: what memory and time it has used, its limit, and its end.

`wait4` is no help with memory: what it reports of a child begins with all that its parent held when it forked.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from quantdeck.sources.sandbox import BUDGET_MB

__all__ = ["Watch"]

_OFTEN_S = 0.01
_BEYOND = 1.2
"""Of the budget, at which an engine is killed that no limit has stopped; some pages are nobody's fault."""

_TICKS = os.sysconf("SC_CLK_TCK")


class Watch:
    """See the module. Made when the engine is ready and has seen no code yet."""

    def __init__(self, pid: int, *, linux: bool) -> None:
        self.pid = pid
        self._linux = linux
        self._idle_kb, self.peak_kb = 0, 0
        self.exact = False
        self.over = False
        self._cpu_ms = self._idle_cpu_ms = 0.0
        if linux:
            status = self._status()
            self._idle_kb = self.peak_kb = status.get("VmHWM", 0)
            self._idle_cpu_ms = self._used_cpu_ms()
            self._limit(status.get("VmData", 0))

    def _limit(self, idle_kb: int) -> None:
        """Writable memory from now on. Set any earlier it would have to allow for all that an engine reserves."""
        most = idle_kb * 1024 + BUDGET_MB * 2**20
        resource.prlimit(self.pid, resource.RLIMIT_DATA, (most, most))

    @property
    def memory_mb(self) -> float:
        return round(max(self.peak_kb - self._idle_kb, 0) / 1024, 3)

    @property
    def process_mb(self) -> float:
        return round(self.peak_kb / 1024, 3)

    @property
    def cpu_ms(self) -> float:
        return max(self._cpu_ms - self._idle_cpu_ms, 0.0)

    def look(self, *, last: bool = False) -> None:
        """Remember the peak so far; the last look before the end is exact."""
        if not self._linux:
            return
        with suppress(OSError, ValueError, IndexError):
            status = self._status()
            if "VmHWM" in status:  # not in what is left of a process that has died
                self.peak_kb = max(self.peak_kb, status["VmHWM"])
                self.exact = last
            self._cpu_ms = self._used_cpu_ms()

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Look often, and kill what has got beyond its budget."""
        task = asyncio.get_running_loop().create_task(self._look_often()) if self._linux else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _look_often(self) -> None:
        while True:
            await asyncio.sleep(_OFTEN_S)
            self.look()
            if self.peak_kb - self._idle_kb > BUDGET_MB * 1024 * _BEYOND:
                self.over = True
                self.kill()
                return

    def kill(self) -> None:
        """End the engine and whatever it may have started. Only while it has not been waited for: the id is its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _used_cpu_ms(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS

    def _status(self) -> dict[str, int]:
        with Path(f"/proc/{self.pid}/status").open() as lines:
            return {
                name: int(said.split()[0])
                for name, _, said in (line.partition(":") for line in lines)
                if name in ("VmHWM", "VmData")
            }
