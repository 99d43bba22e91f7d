"""One peer's process: started with pipes, watched, and ended."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from benchmarks.absence import NotAvailable
from benchmarks.registry import ROOT, environment

START_TIMEOUT_S = 20
END_TIMEOUT_S = 5


class PeerFailed(Exception):
    """The peer ended, or answered something else than all the others do."""


class Process:
    def __init__(self, command: list[str], settings: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open for as long as the process runs
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env={**environment(), **settings},
            bufsize=0,
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self.stdin, self.stdout = self._popen.stdin, self._popen.stdout

    def memory_mb(self, field: str) -> float:
        """`VmRSS`, now, or `VmHWM`, the most there was."""
        for line in Path(f"/proc/{self._popen.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
        raise PeerFailed(f"no {field} for a process that ended")

    def last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "nothing on stderr"

    def end(self) -> None:
        """Closing stdin is how a stdio server is asked to end; the rest is for those who do not listen."""
        self.stdin.close()
        for ask in (self._popen.terminate, self._popen.kill):
            try:
                self._popen.wait(0.3)
                break
            except subprocess.TimeoutExpired:
                ask()
        self._popen.wait(END_TIMEOUT_S)
        self.stdout.close()
        self._log.close()


@asynccontextmanager
async def started(command: list[str], **settings: str) -> AsyncIterator[Process]:
    """`settings` are added to the environment."""
    try:
        process = Process(command, settings)
    except OSError as e:
        raise NotAvailable(f"could not be started: {e}") from e
    try:
        yield process
    finally:
        await asyncio.to_thread(process.end)


@contextmanager
def explained(process: Process) -> Iterator[None]:
    """While a peer is opened and checked, whatever it does wrong is a reason not to have it in the table."""
    try:
        yield
    except (PeerFailed, OSError, EOFError, TimeoutError, LookupError, ValueError) as e:
        raise NotAvailable(f"{type(e).__name__} {e} (stderr: {process.last_words()})".replace("\n", " ")) from e


async def printed_url(process: Process) -> str:
    """The line an HTTP peer prints once it listens."""

    def read() -> str:
        return os.fsdecode(process.stdout.readline()).strip()

    async with asyncio.timeout(START_TIMEOUT_S):
        line = await asyncio.to_thread(read)
    if not line.startswith("http://127.0.0.1:"):
        raise PeerFailed(f"printed {line!r} where its address was expected")
    return line
