"""Engines that are ready before anybody asks. None is used twice."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from quantdeck.core.errors import SourceError
from quantdeck.sources.sandbox.worker import Engine, Worker

__all__ = ["Spares"]

log = logging.getLogger(__name__)


class Spares:
    """Of one engine. There are none before `keep` was first called."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._most = engine, 0
        self._ready: deque[Worker] = deque()
        self._booting: set[asyncio.Task[None]] = set()

    def keep(self, most: int) -> None:
        """From now on have so many ready, and another as soon as one was taken."""
        self._most = most
        self._refill()

    async def take(self) -> Worker:
        """One that is alive and nobody else's."""
        try:
            while self._ready:
                worker = self._ready.popleft()
                if worker.alive:
                    return worker
                await worker.close()
            return await Worker.boot(self._engine)
        finally:
            self._refill()

    async def full(self) -> None:
        """Return when all that are kept are ready, or have failed to be."""
        while self._booting:
            await asyncio.wait(self._booting)

    async def close(self) -> None:
        self._most = 0
        for task in self._booting:
            task.cancel()
        await asyncio.gather(*self._booting, return_exceptions=True)
        while self._ready:
            await self._ready.popleft().close()

    def _refill(self) -> None:
        for _ in range(self._most - len(self._ready) - len(self._booting)):
            task = asyncio.get_running_loop().create_task(self._boot())
            self._booting.add(task)
            task.add_done_callback(self._booting.discard)

    async def _boot(self) -> None:
        try:
            self._ready.append(await Worker.boot(self._engine))
        except SourceError as error:  # whoever needs one next hears of it
            log.warning("no_spare_engine", extra={"fields": {"why": error.message}})
