"""Backtests on a Ray cluster: `ray://host:10001`, or `ray:auto`, `ray:host:6379` on a machine that is part of it.

Ray itself runs in a process beside this one, which is started with the first backtest and again where it has ended.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from quantdeck.backtesting.engine import Metrics
from quantdeck.backtesting.sweeps import Numbers, SweepFailedError, Task
from quantdeck.backtesting.sweeps.cluster import Link, LostError, is_installed
from quantdeck.connections.databases import Databases
from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.backtester import Backtester, Job, Tell

__all__ = ["OnRay", "connect"]

_NAME = "ray"


def connect(url: str, settings: Settings, databases: Databases) -> OnRay:
    """The adapter."""
    del settings, databases
    address = url if url.startswith("ray://") else url.removeprefix("ray:")
    if not address or address == "ray://":
        raise MisconfiguredError(
            "QUANTDECK_BACKTESTER names no cluster; say ray://host:10001, ray:host:6379 or ray:auto"
        )
    return OnRay(address)


class OnRay(Backtester):
    """See the module. How many run at once is the cluster's to say."""

    source = _NAME

    def __init__(self, address: str) -> None:
        self._address = address
        self._turn = asyncio.Lock()
        self._link: Link | None = None
        self._open = AsyncExitStack()

    async def ping(self) -> None:
        """Return once there is a connection."""
        await self._connected()

    async def close(self) -> None:
        await self._open.aclose()

    async def _run(self, job: Job, tell: Tell) -> Metrics:
        job.spec.instantiate(job.parameters)  # or it is unfit, which needs no cluster to know
        link = await self._connected()
        try:
            key = await link.put(Task(job.spec, job.bars, job.terms))
            try:
                (outcome,), _ = await link.outcomes(key, [(0, _numbers(job))])
            finally:
                await link.forget(key)
        except SweepFailedError as error:
            raise Unreachable(f"{error}; try again", source=_NAME) from error
        except LostError as error:
            raise QueryFailed("The backtest's process on the cluster ended, several times", source=_NAME) from error
        if outcome.metrics is None:
            raise QueryFailed(f"On the cluster {outcome.problem}", source=_NAME)
        return outcome.metrics

    async def _connected(self) -> Link:
        """The one connection; a new one where it was lost. Callers that come meanwhile wait for the same."""
        async with self._turn:
            if self._link is None or self._link.failed:
                await self._open.aclose()
                self._link = None
                if not is_installed():
                    advice = "The settings name ray, which is not installed: pip install 'quantdeck[ray]'"
                    raise Unreachable(advice, source=_NAME)
                try:
                    self._link = await self._open.enter_async_context(Link.to(self._address))
                except SweepFailedError as error:
                    raise Unreachable(str(error), source=_NAME) from error
            return self._link


def _numbers(job: Job) -> Numbers:
    numbers = [one.number(job.parameters.get(one.name, one.default)) for one in job.spec.parameters]
    return tuple(number for number in numbers if number is not None)
