"""What it takes to do a thing once: a slot to claim, a journal that remembers the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Conflict", "Journal", "Recorded", "Slot", "Unknown"]


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one answer. The fingerprint tells a retry from another request under its key."""

    scope: str
    key: str
    fingerprint: str
    repeatable: bool = False
    """Nothing is changed, so a lost answer is no unknown outcome."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The stored answer, and whether it is an earlier call's."""

    answer: bytes
    replayed: bool


class Conflict(Exception):
    """The slot's key was used before with another fingerprint."""


class Unknown(Exception):
    """The slot was claimed and its claim ran out without an answer: the effect may have happened."""


class Journal(Protocol):
    """Remembers answers. Which of them survive a crash, and together with what, is its own affair."""

    async def run(self, slot: Slot, effect: Callable[[], Awaitable[bytes]]) -> Recorded:
        """The slot's answer: an earlier one replayed, or the effect's.

        A concurrent call for the same slot waits for the first and replays. An effect that raises
        leaves the slot free. Raises `Conflict` for another fingerprint, and `Unknown` where a crash
        can separate an effect from its answer.
        """
        ...
