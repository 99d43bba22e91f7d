"""Whether the cage holds on this machine, found out by trying what it must refuse."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path

from quantdeck.sources.sandbox.cage import ENVIRONMENT, Cage, Level, interpreter

__all__ = ["attempted", "tried"]

_LONGEST_S = 20.0
_PROBE = Path(__file__).with_name("probe.py")


async def tried(level: Level) -> str:
    """Why the cage does not hold; nothing if it does."""
    if sys.platform != "linux":
        return "it needs Landlock and seccomp, which are Linux's"
    try:
        found, told = await attempted(level)
    except TimeoutError:
        return "the trial took too long"
    if not found:
        return told or "the trial did not begin"
    possible = [name for name, was in found.items() if was and not (level.endswith("+jit") and "executab" in name)]
    if possible:
        return f"in a trial it was possible to {possible[0]}"
    return "" if told == "done" else "the trial did not come to its end"


async def attempted(level: Level) -> tuple[dict[str, bool], str]:
    """Of each thing that must be refused whether it was possible; and `done`, or what the launcher said."""
    with tempfile.TemporaryDirectory(prefix="quantdeck-trial-") as folder:
        canary = Path(folder) / "canary"
        canary.write_text("a file that no analysis may read")
        listening = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            program = [sys.executable, "-I", "-S", "-B", str(_PROBE), str(os.getpid()), str(canary), str(port)]
            sees = await asyncio.to_thread(interpreter, f"r:{_PROBE}")
            return await _said(Cage(program, sees, level))


async def _said(cage: Cage) -> tuple[dict[str, bool], str]:
    process = await asyncio.create_subprocess_exec(
        *cage.line(parent=os.getpid()), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=ENVIRONMENT, cwd="/"
    )
    try:
        async with asyncio.timeout(_LONGEST_S):
            out, error = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    *lines, last = out.decode().split("\n")[:-1] or [""]
    found = {name: word == "possible" for word, _, name in (line.partition(" ") for line in lines)}
    return found, last if last == "done" else error.decode(errors="replace").strip()[-200:]
