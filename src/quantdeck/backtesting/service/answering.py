"""The three methods: so many at a time, in a thread or in a process that can be killed, and gone when nobody waits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from quantdeck import __version__
from quantdeck.backtesting.engine.spacing import spacing_s
from quantdeck.backtesting.messages import Unfit
from quantdeck.backtesting.messages.results import as_result, as_verdict, as_whole
from quantdeck.backtesting.protocol import backtesting_pb2 as protocol
from quantdeck.backtesting.service import asked
from quantdeck.backtesting.worker import Batch, Validation, Work
from quantdeck.connections.grpc import SIGNATURE
from quantdeck.core.errors import SourceError
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.sources.backtester.inprocess import InProcess, values

__all__ = ["NAME", "Answering", "Stored"]

log = logging.getLogger(__name__)

NAME = protocol.DESCRIPTOR.services_by_name["BacktestingService"].full_name

Stored = Callable[[str], Awaitable[StrategySpec | None]]
"""Looks a spec up by its name."""

Answer = Callable[[Any, int], Awaitable[Any]]
"""A method: the message and its size."""

_LIGHT, _LIGHT_COLUMNS = 2**16, 2**22
"""Bytes that are gone through in no time, message by message and as columns; more are so in a thread."""

_SIGNED = ((SIGNATURE, __version__),)

_MOST_SAID = 4_000
"""Bytes of a refusal: it travels in a header, and headers have an end."""

_PER_WINDOW = 4_000
"""As many values is one pair of windows worth, however short they are."""


class Answering:
    """What is behind the service. `places` is how many requests it holds, those that wait for their turn included."""

    def __init__(self, runner: InProcess, stored: Stored, places: int) -> None:
        self._runner, self._stored, self._places = runner, stored, places
        self._held = 0
        self.idle = asyncio.Event()
        self.idle.set()

    def handler(self) -> grpc.GenericRpcHandler:
        """For a server. Requests come as bytes, so that a long one is not read where everything else waits for it."""
        methods = {
            "RunBacktest": (protocol.BacktestRequest, self._backtest),
            "RunBatchBacktest": (protocol.BatchBacktestRequest, self._batch),
            "RunWalkForwardValidation": (protocol.WalkForwardRequest, self._validation),
        }
        return grpc.method_handlers_generic_handler(
            NAME,
            {
                name: grpc.unary_unary_rpc_method_handler(
                    self._method(name, kind, answer), response_serializer=lambda result: result.SerializeToString()
                )
                for name, (kind, answer) in methods.items()
            },
        )

    def _method(self, name: str, kind: Any, answer: Answer) -> Callable[..., Awaitable[Any]]:
        async def method(data: bytes, context: Any) -> Any:
            begun, status = monotonic(), "CANCELLED"
            try:
                async with self._place(context):
                    status, result = await self._answered(answer, kind, data, context)
                    return result
            except grpc.aio.AbortError:
                status = context.code().name
                raise
            finally:
                fields = {"method": name, "status": status, "bytes": len(data)}
                log.info("backtest", extra={"fields": {**fields, "took_s": round(monotonic() - begun, 6)}})

        return method

    @asynccontextmanager
    async def _place(self, context: Any) -> AsyncIterator[None]:
        if self._held >= self._places:
            said = f"the service is busy: it holds {self._held} requests, as many as it may; try again later"
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, said)
        self._held += 1
        self.idle.clear()
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self.idle.set()

    async def _answered(self, answer: Answer, kind: Any, data: bytes, context: Any) -> tuple[str, Any]:
        try:
            light = len(data) < _LIGHT_COLUMNS
            request = kind.FromString(data) if light else await asyncio.to_thread(kind.FromString, data)
            return "OK", await answer(request, len(data))
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"this is no {kind.DESCRIPTOR.full_name}", _SIGNED)
        except Unfit as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _told(error.problems), _SIGNED)
        except SourceError as error:
            await context.abort(grpc.StatusCode.INTERNAL, error.message, _SIGNED)
        except Exception:
            log.exception("backtest_failed")
            await context.abort(grpc.StatusCode.INTERNAL, "the service failed; its log says why")
        raise AssertionError("abort raises")

    async def _backtest(self, request: Any, size: int) -> Any:
        one = await self._read(asked.backtest, request, size)
        work = Work(one.spec, one.bars, one.terms, one.whole)
        found = await self._runner.done(work, values(one.spec, len(one.bars)))
        return (as_whole if one.whole else as_result)(found, spacing_s(one.bars))

    async def _batch(self, request: Any, size: int) -> Any:
        all_ = await self._read(asked.batch, request, size)
        many = sum(values(spec, len(all_.bars)) for spec in all_.specs)
        found = await self._runner.done(Batch(all_.specs, all_.bars, all_.terms), many)
        step_s = spacing_s(all_.bars)
        return protocol.BatchBacktestResult(results=[as_result(one, step_s) for one in found])

    async def _validation(self, request: Any, size: int) -> Any:
        whole = await self._read(asked.validation, request, size)
        one, windows = whole.one, whole.windows
        many = whole.many * (values(one.spec, windows.train + windows.test) + _PER_WINDOW)
        found = await self._runner.done(Validation(one.spec, one.bars, one.terms, windows), many)
        verdict, pairs = found
        return as_verdict(verdict, pairs, spacing_s(one.bars))

    async def _read(self, reader: Callable[[Any, asked.Known], Any], request: Any, size: int) -> Any:
        known = {name: spec for name in asked.names(request) if (spec := await self._stored(name)) is not None}
        here = size < (_LIGHT_COLUMNS if _has_job(request) else _LIGHT)
        return reader(request, known) if here else await asyncio.to_thread(reader, request, known)


def _has_job(request: Any) -> bool:
    return "job" in request.DESCRIPTOR.fields_by_name and bool(request.HasField("job"))


def _told(problems: list[str]) -> str:
    """All of them, or as many as a header has room for."""
    said: list[str] = []
    used = 0
    for place, problem in enumerate(problems):
        used += len(problem.encode()) + 2
        if used > _MOST_SAID and said:
            return "; ".join([*said, f"and {len(problems) - place:,} more"])
        said.append(problem[:_MOST_SAID])
    return "; ".join(said)
