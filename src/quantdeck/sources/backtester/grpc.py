"""Backtests by a service: one of ours, whose answers are those of `inprocess`, or one of tradestream's.

Ours is sent everything that the engine takes. Theirs knows strategies by name, and is sent the numbers in the message
that the name has, over the finest bars that its messages have room for; fees, cash and rates are its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from quantdeck.backtesting.engine import Backtest, Metrics, run, sound
from quantdeck.connections.databases import Databases
from quantdeck.connections.grpc import SOURCE, Channels, RefusedError, TookTooLong, UnknownHereError, place
from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.domain.candles import Bars, resampled
from quantdeck.domain.timeframes import TIMEFRAMES, Timeframe
from quantdeck.settings import Grpc, Settings
from quantdeck.sources import backtester
from quantdeck.sources.backtester import Backtester, Job, Tell

T = TypeVar("T")

__all__ = ["OverGrpc", "connect", "fitting"]

COARSER = ("5m", "15m", "1h", "4h", "1d")
"""What bars are made into where a message has no room for them as they are."""

_RUN = "/backtesting.BacktestingService/RunBacktest"
_HEALTH = "/grpc.health.v1.Health/Check"
_SERVING = b"\x08\x01"
"""A HealthCheckResponse that says so."""

_MIB = 2**20


def connect(url: str, settings: Settings, databases: Databases) -> OverGrpc:
    """The adapter."""
    del databases
    return OverGrpc(Channels(place(url, settings.grpc), settings.grpc), settings.grpc)


class OverGrpc(Backtester):
    """See the module."""

    source = SOURCE

    def __init__(self, channels: Channels, options: Grpc) -> None:
        self._channels, self._options = channels, options
        self._ours: bool | None = None  # whether the service is one of ours, once that is known
        self.about = f"a service at {channels.where.target}"

    async def ping(self) -> None:
        """Return if the service is there."""
        self._ours = None
        serving, _ = await self._is_ours(), await self._health("")
        whose = "a service of quantdeck" if serving else "a service that is not quantdeck's"
        self.about = f"{whose} at {self._channels.where.target}"

    async def close(self) -> None:
        """Close the connections."""
        await self._channels.close()

    async def _run(self, job: Job, tell: Tell) -> Metrics:
        spec, bars = job.spec.instantiate(job.parameters), sound(job.bars)
        if not len(bars):  # there is nothing to send, and one answer only
            return run(spec, bars, job.terms).metrics
        return await self._told(lambda: self._exactly(job, bars, _figures), lambda: self._by_name(job, bars))

    async def _whole(self, job: Job, tell: Tell) -> Backtest:
        """Its service tells when it was in the market; what that came to is computed here, as it is there."""
        spec, bars = job.spec.instantiate(job.parameters), sound(job.bars)
        if not len(bars):
            return run(spec, job.bars, job.terms)

        async def refused() -> Backtest:
            return await super(OverGrpc, self)._whole(job, tell)

        def read(result: Any) -> Backtest:
            from quantdeck.backtesting.messages.results import whole_of_ours

            found = whole_of_ours(result, bars, job.terms)
            if found is None:
                raise QueryFailed(
                    "The backtester tells no trades: it is a service of an older quantdeck. Upgrade it, or unset what "
                    "needs them (such as QUANTDECK_BACKTESTS__EVENTS).",
                    source=SOURCE,
                )
            return replace(found, left_out=len(job.bars) - len(bars))

        return await self._told(lambda: self._exactly(job, bars, read, whole=True), refused)

    async def _told(self, exactly: Callable[[], Awaitable[T | None]], by_name: Callable[[], Awaitable[T | None]]) -> T:
        """Asked in the way in which the service can be; anew, where it was replaced meanwhile."""
        try:
            for _ in range(2):
                told = await (exactly() if await self._is_ours() else by_name())
                if told is not None:
                    return told
                self._ours = None  # it was another service, and has been replaced
        except (Unreachable, UnknownHereError):
            self._ours = None
            raise
        except TookTooLong as error:
            raise backtester.TookTooLong(error.message, source=SOURCE) from error
        raise QueryFailed("The backtester is being replaced by another; try again.", source=SOURCE)

    async def _is_ours(self) -> bool:
        if self._ours is None:
            from quantdeck.backtesting.messages.peers import OURS

            self._ours = await self._health(OURS) is not None
        return self._ours

    async def _health(self, service: str) -> bool | None:
        """Whether a service says that it serves; None where nobody knows of it."""
        name = service.encode()
        request = b"\x0a" + bytes([len(name)]) + name if name else b""
        try:
            return await self._channels.ask(_HEALTH, request, within_s=self._options.connect_s) == _SERVING
        except UnknownHereError:
            return None

    async def _exactly(self, job: Job, bars: Bars, read: Callable[[Any], T], *, whole: bool = False) -> T | None:
        """Of a service of ours; None where it was none."""
        from quantdeck.backtesting.messages.jobs import as_request
        from quantdeck.backtesting.messages.results import is_ours
        from quantdeck.backtesting.protocol.backtesting_pb2 import BacktestResult

        asked = await _here_or_in_a_thread(
            lambda: as_request(job.spec, job.parameters, job.symbol, bars, job.terms, whole=whole), len(bars)
        )
        try:
            result = BacktestResult.FromString(await self._channels.ask(_RUN, asked))
        except RefusedError as error:
            if not error.ours:
                return None
            raise QueryFailed(f"{error.message[:-1]}: {error.said}.", source=SOURCE) from error
        return read(result) if is_ours(result) else None

    async def _by_name(self, job: Job, bars: Bars) -> Metrics | None:
        """Of a service of tradestream's; None where it was none."""
        from quantdeck.backtesting.messages import Unfit
        from quantdeck.backtesting.messages.candles import as_candles
        from quantdeck.backtesting.messages.results import is_ours, of_theirs
        from quantdeck.backtesting.messages.strategies import named
        from quantdeck.backtesting.protocol.backtesting_pb2 import BacktestRequest, BacktestResult

        numbers = {one.name: one.number(job.parameters.get(one.name, one.default)) for one in job.spec.parameters}
        try:
            strategy = named(job.spec.name, {name: value for name, value in numbers.items() if value is not None})
        except Unfit as error:
            raise QueryFailed(f"The backtester cannot be asked for this: {error}.", source=SOURCE) from error

        def message(some: Bars) -> Any:
            return BacktestRequest(candles=as_candles(some, job.symbol), strategy=strategy)

        bare = message(bars[:0]).ByteSize()
        room = self._options.peer_message_mb * _MIB - bare
        sent = fitting(bars, job.timeframe, int(room / (message(bars[:1]).ByteSize() - bare)))
        asked = await _here_or_in_a_thread(lambda: message(sent.bars).SerializeToString(), len(sent.bars) * 100)
        try:
            result = BacktestResult.FromString(await self._channels.ask(_RUN, asked))
        except RefusedError as error:
            if error.ours:
                return None
            raise
        return None if is_ours(result) else of_theirs(result, sent.bars, job.terms, corrected=self._options.corrected)


def _figures(result: Any) -> Metrics:
    from quantdeck.backtesting.messages.results import of_ours

    return of_ours(result)


@dataclass(frozen=True, slots=True)
class Fitting:
    bars: Bars
    timeframe: Timeframe


def fitting(bars: Bars, timeframe: Timeframe, most: int) -> Fitting:
    """The finest bars of which there are no more than that: these, or coarser ones made of them, whole at both ends."""
    if len(bars) <= most:
        return Fitting(bars, timeframe)
    ends = int(bars.time[-1]) + timeframe.seconds
    for coarser in (TIMEFRAMES[name] for name in COARSER):
        if coarser.seconds > timeframe.seconds and coarser.is_made_of(timeframe):
            found = resampled(bars.between(coarser.ceil(int(bars.time[0])), coarser.floor(ends)), coarser)
            if 0 < len(found) <= most:
                return Fitting(found, coarser)
    raise QueryFailed(
        f"{len(bars):,} bars of {timeframe} are more than a message to the backtester has room for; ask for fewer.",
        source=SOURCE,
    )


async def _here_or_in_a_thread(make: Callable[[], bytes], weight: int) -> bytes:
    return make() if weight < 200_000 else await asyncio.to_thread(make)
