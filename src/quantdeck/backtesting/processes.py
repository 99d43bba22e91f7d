"""The end of a process that nobody needs any more."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from asyncio.subprocess import Process

__all__ = ["ended"]


async def ended(process: Process) -> None:
    """Kill it, and return when it is gone: also where whoever waits is cancelled, which is told after that.

    Else the event loop may end before it, and nobody is there to hear of its end.
    """
    if process.returncode is None:
        process.kill()
    waiting = asyncio.ensure_future(process.wait())
    cancelled = False
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except CancelledError:
            cancelled = True
    if cancelled:
        raise CancelledError
