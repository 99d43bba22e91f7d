"""What costs megabytes to fetch is fetched once for all who want it, and kept a while.

Where it could not be had, that is remembered for a moment too.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from quantdeck.core.errors import Busy, SourceError, Unreachable

__all__ = ["Kept"]

T = TypeVar("T")

_MAX_KEYS = 10
_FAILED_S = 10.0


@dataclass(slots=True)
class _Held(Generic[T]):
    task: asyncio.Task[T]
    until: float | None = None  # None while it is on its way
    has_failed: bool = False


class Kept(Generic[T]):
    """Values by key. A failure to reach the source is remembered for seconds, any other failure not at all."""

    def __init__(self, keep_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._keep_s, self._clock = keep_s, clock
        self._held: OrderedDict[str, _Held[T]] = OrderedDict()

    def __len__(self) -> int:
        """How many keys there are at this moment, with those on their way and those that failed."""
        return len(self._held)

    async def get(self, key: str, load: Callable[[], Awaitable[T]]) -> T:
        """The value of a key; who comes while it is on its way waits for the same."""
        held = self._held.get(key)
        if held is None or (held.until is not None and held.until <= self._clock()):
            # A task without a group: it outlives any one of those who wait, and is over when its request is.
            held = self._held[key] = _Held(asyncio.get_running_loop().create_task(self._load(key, load)))
            held.task.add_done_callback(_heard)
        self._held.move_to_end(key)
        return await asyncio.shield(held.task)

    async def close(self) -> None:
        """Break off what is on its way."""
        tasks = [held.task for held in self._held.values() if not held.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._held.clear()

    async def _load(self, key: str, load: Callable[[], Awaitable[T]]) -> T:
        keep_s, has_failed = 0.0, True
        try:
            value = await load()
            keep_s, has_failed = self._keep_s, False
        except SourceError as error:
            keep_s = _FAILED_S if isinstance(error, (Unreachable, Busy)) else 0.0
            raise
        else:
            return value
        finally:
            if (held := self._held.get(key)) is not None:
                held.until, held.has_failed = self._clock() + keep_s, has_failed
            self._trim()

    def _trim(self) -> None:
        """The list that everybody may see, whose key is empty, stays; of the others those that were used last.

        Failures go first: whoever makes up tokens takes nobody's list away, and fills nothing.
        """
        spare = [key for key, held in self._held.items() if key and held.until is not None]
        spare.sort(key=lambda key: not self._held[key].has_failed)
        for key in spare[: max(len(self._held) - _MAX_KEYS, 0)]:
            del self._held[key]


def _heard(task: asyncio.Task[T]) -> None:
    if not task.cancelled():
        task.exception()  # whoever waited has heard it
