"""Idempotency by leases, for effects that go where no transaction of ours reaches; stores say how a key is kept.

claimed (lease) -> answered. A lease that ran out without an answer is *unknown*, not free: its holder may have died
between the effect and the record of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from quantdeck.connections.database import finished
from quantdeck.core.errors import Busy, Denied, NotConfigured, NotInPast, SourceError, ToolError
from quantdeck.core.once import Recorded, Slot
from quantdeck.ids import fresh_id

__all__ = ["KEEP", "Claim", "Held", "Leases"]

KEEP = timedelta(hours=24)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.25

_UNDONE = (ToolError, Busy, Denied, NotConfigured, NotInPast)
"""These say that nothing was done."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt to be who does it. The holder's name keeps a late record from being another's."""

    slot: Slot
    holder: str


@dataclass(frozen=True, slots=True)
class Held:
    """What another has there: its answer, or None while it is under way."""

    answer: bytes | None


class Leases(ABC):
    """See `Journal`."""

    async def run(self, slot: Slot, effect: Callable[[], Awaitable[bytes]]) -> Recorded:
        """See `Journal`."""
        claim, pause_s = Claim(slot, fresh_id(32)), _FIRST_PAUSE_S
        while (held := await self._claimed(claim)) is not None:
            if held.answer is not None:
                return Recorded(held.answer, replayed=True)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        return Recorded(await self._answered(claim, effect), replayed=False)

    async def _claimed(self, claim: Claim) -> Held | None:
        try:
            return await self._claim(claim)
        except asyncio.CancelledError:
            # It may have been stored; nothing was begun under it, so it must not stand as an unknown outcome.
            with contextlib.suppress(SourceError):
                await finished(self._free(claim))
            raise

    async def _answered(self, claim: Claim, effect: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            answer = await effect()
        except BaseException as error:
            with contextlib.suppress(SourceError):  # what the effect met is what its caller should hear
                await (self._free(claim) if isinstance(error, _UNDONE) else self._lose(claim))
            raise
        await self._finish(claim, answer)
        return answer

    # What a store supplies. Of a claim that is no longer the slot's, the last three touch nothing.

    @abstractmethod
    async def _claim(self, claim: Claim) -> Held | None:
        """None where the slot is this claim's now; raises Conflict, or Unknown where a lease ran out."""

    @abstractmethod
    async def _finish(self, claim: Claim, answer: bytes) -> None:
        """Keep the answer."""

    @abstractmethod
    async def _free(self, claim: Claim) -> None:
        """Let go of a slot under which nothing was done."""

    @abstractmethod
    async def _lose(self, claim: Claim) -> None:
        """End the lease now: what became of the effect is not known."""
