"""Processes that read one store of bars over and over while another may write: what that does to their latency.

`python -m benchmarks.bar_readers read HOME SYMBOL SECONDS END_S` prints the microseconds that reads took, as JSON.
`… write HOME SYMBOL SECONDS END_S` writes the last bar of SYMBOL again and again, and prints how often.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from benchmarks.bar_stores import made, ours
from quantdeck.core.clock import Now
from quantdeck.domain.timeframes import MINUTE, TIMEFRAMES

HOUR = TIMEFRAMES["1h"]


async def read(home: Path, symbol: str, seconds: float, end_s: int) -> list[float]:
    as_of = Now.of(datetime.fromtimestamp(end_s, UTC), fixed=True)
    took: list[float] = []
    async with ours(home) as store:
        await store.newest(symbol, HOUR, 100, as_of=as_of)
        until = perf_counter() + seconds
        while (begun := perf_counter()) < until:
            await store.newest(symbol, MINUTE, 100, as_of=as_of)
            took.append((perf_counter() - begun) * 1e6)
            await asyncio.sleep(0.005)  # an agent's pace: three readers that spin would measure the cores
    return took


async def write(home: Path, symbol: str, seconds: float, end_s: int) -> int:
    bars, written = made(0, 1440 * 2)[-1:], 0
    bars.time[:] = end_s - 60
    async with ours(home) as store:
        until = perf_counter() + seconds
        while perf_counter() < until:
            await store.write(symbol, MINUTE, bars)
            written += 1
    return written


def main() -> None:
    how, home, symbol, seconds, end_s = sys.argv[1:]
    work = {"read": read, "write": write}[how]
    print(json.dumps(asyncio.run(work(Path(home), symbol, float(seconds), int(end_s)))))


if __name__ == "__main__":
    main()
