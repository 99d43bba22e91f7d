"""What a table's readers compare to know whether others have written."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["Revision"]


class Revision:
    """A mark that changes with every write: asked at most twice a second, and anew after a write of our own."""

    def __init__(
        self, ask: Callable[[], Awaitable[Any]], *, keep_s: float = 0.5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._keep_s, self._clock = ask, keep_s, clock
        self._mark: Any = None
        self._until = float("-inf")
        self._writes = 0

    async def __call__(self) -> Any:
        if self._clock() >= self._until:
            writes, asked_at = self._writes, self._clock()
            self._mark = await self._ask()
            if writes == self._writes:  # or it may have been asked before the write
                self._until = asked_at + self._keep_s
        return self._mark

    def changed(self) -> None:
        """A write of ours is done."""
        self._writes += 1
        self._until = float("-inf")
