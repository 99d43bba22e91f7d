"""A worker: a process that has an engine and is ready, runs one analysis, and is ended whatever came of it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from quantdeck.core.errors import Unreachable
from quantdeck.sources.sandbox import MOST_CALLS, Analysis, Problem, RefusedError, Report
from quantdeck.sources.sandbox.cage import ENVIRONMENT, Cage
from quantdeck.sources.sandbox.doors import Calls, Console, shown
from quantdeck.sources.sandbox.failures import crashed, violated
from quantdeck.sources.sandbox.frames import LONGEST_LINE, TooDeepError, ViolationError, next_frame, read_text
from quantdeck.sources.sandbox.watch import Watch

__all__ = ["Engine", "Worker"]

log = logging.getLogger(__name__)

BOOT_S = 20.0
_STDERR = 16_384
_FLAT = "Return figures, or lists of them."


@dataclass(frozen=True, slots=True)
class Engine:
    """How a language's worker is started, and what its failures mean: the stage, and what else a `failed` holds."""

    cage: Cage
    explain: Callable[..., Problem]


class Worker:
    """See the module."""

    def __init__(self, engine: Engine, process: Process, pid: int, stderr: asyncio.Task[bytes]) -> None:
        self._engine, self._process, self._stderr = engine, process, stderr
        self.watch = Watch(pid or process.pid, linux=sys.platform == "linux")
        self._writing = asyncio.Lock()

    @classmethod
    async def boot(cls, engine: Engine) -> Self:
        """One that is ready and has seen no code."""
        process = await asyncio.create_subprocess_exec(
            *engine.cage.line(parent=os.getpid()),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=ENVIRONMENT,
            cwd="/",
            limit=LONGEST_LINE,
            start_new_session=True,  # so that all of it can be killed at once
        )
        stderr = asyncio.get_running_loop().create_task(_tail(process))
        try:
            async with asyncio.timeout(BOOT_S):
                kind, pid = await next_frame(_out(process)) or ("", 0)
            if kind == "ready" and _is_of(process.pid, pid):
                return cls(engine, process, pid, stderr)
        except (TimeoutError, ViolationError, ValueError, OSError):
            pass
        except BaseException:
            await _end(process, stderr)
            raise
        raise _unready(await _end(process, stderr))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Looked up anew: the loop hears of an end a while after it."""
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return ended is None and self._process.returncode is None

    async def run(self, analysis: Analysis, calls: Calls, report: Report) -> None:
        """Fill in the report's value or problem, and its console as it comes. Cancelled when time is up."""
        answering: set[asyncio.Task[None]] = set()
        try:
            await self._send("run", analysis.code, analysis.now_ms)
            await self._listen(calls, report, answering)
        except ViolationError as error:
            report.problem = violated(str(error))
        except TooDeepError:
            report.problem = Problem("runtime", "RangeError", "The result is nested too deeply", hint=_FLAT)
        finally:
            for task in answering:
                task.cancel()
            await asyncio.gather(*answering, return_exceptions=True)

    async def close(self) -> None:
        """End it, and return when nothing of it is left."""
        await _end(self._process, self._stderr)

    async def _listen(self, calls: Calls, report: Report, answering: set[asyncio.Task[None]]) -> None:
        console, heard = Console(report.console), 0
        while True:
            frame = await next_frame(_out(self._process))
            match frame:
                case ("log", line):
                    console.write(line)
                case ("call", number, method, text):
                    heard += 1
                    if number != heard or number > MOST_CALLS:
                        raise ViolationError("a call out of turn")
                    task = asyncio.get_running_loop().create_task(self._answer(calls, number, method, text))
                    answering.add(task)
                    task.add_done_callback(answering.discard)
                case ("result", text):
                    self.watch.look(last=True)
                    _value(read_text(text), report)
                    return
                case ("failed", stage, text):
                    self.watch.look(last=True)
                    report.problem = self._engine.explain(stage, *_texts(read_text(text)))
                    return
                case None:
                    await self._process.wait()
                    told = (await self._stderr).decode(errors="replace")
                    report.problem = crashed(self._process.returncode, told, over=self.watch.over)
                    return
                case _:
                    raise ViolationError("a frame out of turn")

    async def _answer(self, calls: Calls, number: int, method: str, text: str) -> None:
        try:
            told = (await calls(method, _arguments(text))).decode()
        except RefusedError as error:
            await self._refuse(number, error)
        except Exception:  # of which the code is told nothing, but it must not wait
            log.exception("binding_failed", extra={"fields": {"method": method}})
            await self._refuse(number, RefusedError("internal", "The server failed in a way it did not foresee."))
        else:
            await self._send("reply", number, True, told)

    async def _refuse(self, number: int, error: RefusedError) -> None:
        said = orjson.dumps({"code": error.code, "message": error.message}).decode()
        await self._send("reply", number, False, said)

    async def _send(self, *frame: Any) -> None:
        """Wait until it is taken: an engine that does not read must not fill our memory."""
        stdin = self._process.stdin
        assert stdin is not None
        async with self._writing:
            with suppress(BrokenPipeError, ConnectionResetError):  # who listens to it hears its end
                stdin.write(orjson.dumps(frame) + b"\n")
                await stdin.drain()


def _arguments(text: str) -> Any:
    try:
        return read_text(text)
    except (ViolationError, TooDeepError):
        return None  # which is refused, as what is no list


def _unready(stderr: bytes) -> Unreachable:
    """What our own programs said is told; what an engine said, with its paths, is for the log."""
    lines = stderr.decode(errors="replace").strip().split("\n")
    log.warning("engine_does_not_start", extra={"fields": {"stderr": "\n".join(lines)[-2000:]}})
    ours = next((line for line in lines if line.startswith(("launcher: ", "engine: "))), "the server's log has why")
    return Unreachable(f"The engine does not start: {ours}", source="sandbox")


def _value(told: Any, report: Report) -> None:
    if not isinstance(told, list) or len(told) != 2 or type(told[0]) is not int:
        raise ViolationError("not what a result holds")
    lost, report.value = told
    if lost:
        report.notes.append(f"{lost} numbers in the result were NaN or infinite and are null")


def _texts(told: Any) -> list[Any]:
    """What a failure holds, no longer and of no other types than an honest engine's."""
    if not isinstance(told, list) or not all(one is None or type(one) in (str, int) for one in told):
        raise ViolationError("not what a failure holds")
    return [shown(one[:8000]) if isinstance(one, str) else one for one in told]


def _is_of(parent: int, pid: Any) -> bool:
    """Whether an engine that names another process as the one to watch names its own child."""
    if type(pid) is not int:
        return False
    if pid in (0, parent):
        return True
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(told[1]) == parent


def _out(process: Process) -> asyncio.StreamReader:
    assert process.stdout is not None
    return process.stdout


async def _tail(process: Process) -> bytes:
    """The end of what it complains of."""
    assert process.stderr is not None
    held = b""
    while data := await process.stderr.read(_STDERR):
        held = (held + data)[-_STDERR:]
    return held


async def _end(process: Process, stderr: asyncio.Task[bytes]) -> bytes:
    """Kill it with all that it started, and wait until it is gone and its pipes are closed; what it complained of."""
    assert process.stdin is not None
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.stdin.close()
    while await _out(process).read(LONGEST_LINE):
        pass
    await process.wait()
    return await stderr
