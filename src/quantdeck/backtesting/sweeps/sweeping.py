"""A sweep from where its journal stands to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from quantdeck.backtesting.sweeps import Numbers, Outcome, Task, Tell
from quantdeck.backtesting.sweeps.batches import Batches
from quantdeck.backtesting.sweeps.journal import Journal

__all__ = ["Runner", "sweep"]


class Runner(Protocol):
    """Computes all that is handed out, and tells of it."""

    async def run(self, task: Task, batches: Batches, tell: Tell) -> None: ...


async def sweep(
    task: Task, points: Sequence[Numbers], journal: Journal, runner: Runner, done: Callable[[int], None]
) -> list[Outcome]:
    """What each point came to, in their order. `done` hears how many there are so far."""
    known = {one.number: one for one in journal.done if 0 <= one.number < len(points)}

    def tell(outcomes: list[Outcome]) -> None:
        journal.add(outcomes)
        known.update((one.number, one) for one in outcomes)
        done(len(known))

    left = [point for point in enumerate(points) if point[0] not in known]
    if left:
        await runner.run(task, Batches(left), tell)
    return [known[number] for number in range(len(points))]
