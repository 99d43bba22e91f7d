"""The port `backtester`: who runs a strategy over bars, here or elsewhere.

The bars come with the job. What an adapter is given is cut at the as-of barrier before: a bar is known at its close.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quantdeck.backtesting.engine import Metrics, Terms
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.core.errors import SourceError
from quantdeck.domain.candles import Bars, closed_before
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.domain.timeframes import Timeframe

__all__ = ["Backtester", "Job", "Tell", "TookTooLong", "nobody"]

Tell = Callable[[float], Awaitable[None]]
"""Hears which share of the job is done, where who does it says so: a service does not."""


class TookTooLong(SourceError):
    """Whoever runs it gave up before it was done, or never answered."""


async def nobody(share: float) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Job:
    """A spec, the numbers for its parameters, and the bars of one symbol at one length."""

    spec: StrategySpec
    parameters: Mapping[str, Any]
    symbol: str
    timeframe: Timeframe
    bars: Bars
    terms: Terms = field(default_factory=Terms)


class Backtester(Source):
    """See the module."""

    port = "backtester"

    async def run(self, job: Job, tell: Tell = nobody, *, as_of: Now) -> Metrics:
        """What the strategy comes to in the bars that had closed by then.

        Raises UnfitParametersError for numbers with which nothing can be computed. Whoever stops waiting ends the job.
        """
        closed = job.bars.time.searchsorted(closed_before(as_of.timestamp(), job.timeframe))
        return await self._run(replace(job, bars=job.bars[: int(closed)]), tell)

    @abstractmethod
    async def _run(self, job: Job, tell: Tell) -> Metrics:
        """What an adapter supplies; it raises our errors only."""
