"""Bounded load on one peer, and rounds that give every peer its turn on the same noisy machine."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter
from typing import Protocol, TypeVar

from benchmarks.process import PeerFailed
from benchmarks.progress import say

Call = Callable[[], Awaitable[None]]
Key = TypeVar("Key", bound=tuple[str, ...])
Item = TypeVar("Item")

IN_FLIGHT = 32
SAMPLE_TIMEOUT_S = 60
_PILOT_CALLS = 5
_MOST_CALLS = 4000


class Client(Protocol):
    def lanes(self, tool: str, width: int) -> AbstractAsyncContextManager[list[Call]]: ...


@dataclass(frozen=True)
class Sample:
    p50_us: float
    p95_us: float
    rps: float
    calls: int


@dataclass(frozen=True)
class Pace:
    """How long one sample takes, roughly, and how many there are."""

    rounds: int
    half_s: float  # for the calls one by one, and again for those in flight together
    warm_up_s: float  # likewise, before the first round: a just-in-time compiler needs it
    fewest: int  # calls one by one, however slow they are


async def _one_by_one(call: Call, times: int) -> list[float]:
    took = []
    for _ in range(times):
        start = perf_counter()
        await call()
        took.append(perf_counter() - start)
    return took


async def _together(lanes: list[Call], times: int) -> float:
    """Seconds for `times` calls with one in flight per lane."""
    left = iter(range(times))

    async def work(call: Call) -> None:
        for _ in left:
            await call()

    start = perf_counter()
    async with asyncio.TaskGroup() as group:
        for call in lanes:
            group.create_task(work(call))
    return perf_counter() - start


async def sample(client: Client, tool: str, half_s: float, fewest: int) -> Sample:
    async with asyncio.timeout(SAMPLE_TIMEOUT_S), client.lanes(tool, IN_FLIGHT) as lanes:
        per_call_s = median(await _one_by_one(lanes[0], _PILOT_CALLS))
        fitting = min(_MOST_CALLS, int(half_s / per_call_s))
        took = await _one_by_one(lanes[0], max(fitting, fewest))
        together = max(fitting, 2 * len(lanes))
        together_s = await _together(lanes, together)
    return Sample(median(took) * 1e6, quantiles(took, n=20)[-1] * 1e6, together / together_s, len(took) + together)


async def rounds(
    clients: Mapping[Key, tuple[Client, str]], pace: Pace
) -> tuple[dict[Key, list[Sample]], dict[Key, str]]:
    """Every client once per round, starting with another one each time. Returns the samples, and why any stopped."""
    samples: dict[Key, list[Sample]] = {key: [] for key in clients}
    stopped: dict[Key, str] = {}
    for turn in range(-1, pace.rounds):
        say(f"round {turn + 1} of {pace.rounds}" if turn >= 0 else "warm-up")
        for key in _rotated(list(clients), turn):
            if key in stopped:
                continue
            client, tool = clients[key]
            try:
                measured = await sample(client, tool, pace.half_s if turn >= 0 else pace.warm_up_s, pace.fewest)
            except* (PeerFailed, OSError, EOFError, TimeoutError) as failed:
                stopped[key] = _first(failed)
                measured = None
            if measured and turn >= 0:
                samples[key].append(measured)
    return samples, stopped


def _first(failed: BaseExceptionGroup[Exception]) -> str:
    found: BaseException = failed
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return f"{type(found).__name__} {found}".strip()


def _rotated(items: list[Item], by: int) -> list[Item]:
    by %= len(items) or 1
    return items[by:] + items[:by]


def medians(samples: list[Sample]) -> dict[str, float]:
    """Over the rounds, and the range of their p50: how noisy the machine was."""
    p50s = [one.p50_us for one in samples]
    return {
        "p50_us": median(p50s),
        "least_p50_us": min(p50s),
        "most_p50_us": max(p50s),
        "p95_us": median(one.p95_us for one in samples),
        "rps": median(one.rps for one in samples),
    }
