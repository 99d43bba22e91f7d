"""The end of a process that nobody needs any more."""

from __future__ import annotations

import asyncio
import sys

import pytest

from quantdeck.backtesting.processes import ended

WAITING = (sys.executable, "-c", "input()")


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_it_is_gone_also_where_whoever_waits_is_cancelled_meanwhile(times):
    process = await asyncio.create_subprocess_exec(*WAITING, stdin=asyncio.subprocess.PIPE)
    ending = asyncio.create_task(ended(process))
    for _ in range(times):
        await asyncio.sleep(0)
        ending.cancel()
    (found,) = await asyncio.gather(ending, return_exceptions=True)
    assert isinstance(found, asyncio.CancelledError) == (times > 0)
    assert process.returncode == -9


async def test_one_that_has_ended_by_itself_is_left_alone():
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(3)")
    await process.wait()
    await ended(process)
    assert process.returncode == 3
