"""A client of the contract, of no adapter's making."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from quantdeck.backtesting.messages.candles import as_candles
from quantdeck.backtesting.messages.strategies import named
from quantdeck.backtesting.protocol import backtesting_pb2 as protocol
from quantdeck.domain.candles import Bars

__all__ = ["ANSWERS", "Client", "client", "refused", "request"]

ANSWERS = {
    "RunBacktest": protocol.BacktestResult,
    "RunBatchBacktest": protocol.BatchBacktestResult,
    "RunWalkForwardValidation": protocol.WalkForwardResult,
}


class Client:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    def ask(self, message: Any, method: str = "RunBacktest", **how: Any) -> Any:
        """A call that can be awaited, or cancelled."""
        call = self.channel.unary_unary(
            f"/backtesting.BacktestingService/{method}",
            request_serializer=lambda said: said if isinstance(said, bytes) else said.SerializeToString(),
            response_deserializer=ANSWERS[method].FromString,
        )
        return call(message, **how)


@asynccontextmanager
async def client(target: str) -> AsyncIterator[Client]:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(target, options) as channel:
        yield Client(channel)


async def refused(call: Any) -> tuple[str, str]:
    """The status and the sentence with which a call is refused."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error.code().name, error.details() or ""
    raise AssertionError(f"it was answered: {answer}")


def request(bars: Bars, name: str = "SMA_RSI", **numbers: float) -> Any:
    """As tradestream's programs ask."""
    return protocol.BacktestRequest(candles=as_candles(bars, "BTC/USD"), strategy=named(name, numbers))
