"""The port `backtester`: who runs a strategy over bars, here or elsewhere.

The bars come with the job. What an adapter is given is cut at the as-of barrier before: a bar is known at its close.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quantdeck.backtesting.engine import Backtest, Costs, Metrics, Terms
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.core.errors import NotConfigured, SourceError
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import Bars, closed_before
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.domain.timeframes import Timeframe
from quantdeck.settings import Backtests

__all__ = ["Backtester", "Job", "Tell", "TookTooLong", "nobody", "terms"]

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

    def closed(self, *, as_of: Now) -> Job:
        """The same over the bars that had closed by then."""
        end = self.bars.time.searchsorted(closed_before(as_of.timestamp(), self.timeframe))
        return replace(self, bars=self.bars[: int(end)])


def terms(symbol: str, settings: Backtests) -> Terms:
    """What a symbol is traded on: its market's hours, and the costs that the settings say."""
    return Terms(market_of(symbol), costs=Costs(settings.fee, settings.slippage))


class Backtester(Source):
    """See the module."""

    port = "backtester"

    async def run(self, job: Job, tell: Tell = nobody, *, as_of: Now) -> Metrics:
        """What the strategy comes to in the bars that had closed by then.

        Raises UnfitParametersError for numbers with which nothing can be computed. Whoever stops waiting ends the job.
        """
        return await self._run(job.closed(as_of=as_of), tell)

    async def whole(self, job: Job, tell: Tell = nobody, *, as_of: Now) -> Backtest:
        """The same with its trades and its equity curve, where the adapter knows them."""
        return await self._whole(job.closed(as_of=as_of), tell)

    @abstractmethod
    async def _run(self, job: Job, tell: Tell) -> Metrics:
        """What an adapter supplies; it raises our errors only, and TimeoutError where the other side gave up."""

    async def _whole(self, job: Job, tell: Tell) -> Backtest:
        """What an adapter supplies that is told more than figures."""
        raise NotConfigured(
            "Only figures come back from the backtester that QUANTDECK_BACKTESTER names, no trades; unset it, or do "
            "not ask for what needs them (such as QUANTDECK_BACKTESTS__EVENTS)",
            source=self.source,
            setting="QUANTDECK_BACKTESTER",
        )
