"""Follow strategies for as long as a process runs: at each close, and when another process has stored bars.

Nothing is asked of the bars but their newest, every few seconds, so that whoever fills the store need not know of us.
Of several processes one does the work, by a lease in the desk; were there two, each signal would still be stored once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from quantdeck.collectors.evaluating import Evaluated, Evaluation, Tell
from quantdeck.core.clock import Clock
from quantdeck.core.errors import SourceError

__all__ = ["Watch"]

LOOK_S = 5.0
"""How often it is looked whether a bar has closed."""
LEASE_S = 30.0
LONGEST_PAUSE_S = 60.0


@dataclass(slots=True)
class Watch:
    """Runs until it is cancelled. `look_s` is how long it waits between two looks."""

    evaluation: Evaluation
    clock: Clock
    tell: Tell
    look_s: float = LOOK_S
    lease_s: float = LEASE_S

    async def run(self) -> None:
        """See the module."""
        holder, name = str(uuid4()), self._name()
        said: set[str] = set()
        waiting, pause_s = False, self.look_s
        try:
            while True:
                try:
                    if await self.evaluation.evaluations.take(name, holder, self.lease_s):
                        waiting = False
                        self._told(await self._passed(name, holder), said)
                    elif not waiting:
                        waiting = True
                        self.tell("another process follows these strategies; waiting in case it ends")
                    pause_s = self.look_s
                except SourceError as error:
                    pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
                    self.tell(f"{error.message} Trying again in {pause_s:g} s")
                await asyncio.sleep(pause_s)
        finally:
            with suppress(SourceError):
                await asyncio.shield(self.evaluation.evaluations.release(name, holder))

    async def _passed(self, name: str, holder: str) -> Evaluated:
        """One pass, the lease held for as long as it takes."""
        failed: SourceError | None = None
        async with asyncio.TaskGroup() as group:
            kept = group.create_task(self._held(name, holder))
            try:
                return await self.evaluation.once(lambda said: None, as_of=self.clock.now())
            except SourceError as error:  # which a group would wrap
                failed = error
            finally:
                kept.cancel()
        assert failed is not None
        raise failed

    async def _held(self, name: str, holder: str) -> None:
        while True:
            await asyncio.sleep(self.lease_s / 3)
            with suppress(SourceError):
                await self.evaluation.evaluations.take(name, holder, self.lease_s)

    def _told(self, made: Evaluated, said: set[str]) -> None:
        """What is new: a problem once, until it is gone."""
        for about, problem in made.problems.items():
            if about not in said:
                self.tell(problem)
        said.clear()
        said.update(made.problems)
        if made.signals or made.weeks:
            self.tell(made.told())

    def _name(self) -> str:
        return f"evaluate {self.evaluation.symbol or '*'} {self.evaluation.strategy or '*'}"
