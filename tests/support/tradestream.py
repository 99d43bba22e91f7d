"""A service as tradestream's own is, as far as it matters to who calls it: written from what is known of that one.

It knows nine names, runs them on defaults where the parameters are of another message than it expects, refuses what is
over 4 MiB, knows nothing of our health, and takes every bar for a minute of 252 days.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from quantdeck.backtesting.protocol import backtesting_pb2 as protocol
from quantdeck.backtesting.protocol import strategies_pb2

__all__ = ["DEFAULTS", "Peer", "peer"]

DEFAULTS: dict[str, dict[str, float]] = {
    "SMA_RSI": {"movingAveragePeriod": 20, "rsiPeriod": 14, "oversoldThreshold": 30, "overboughtThreshold": 70},
    "DOUBLE_EMA_CROSSOVER": {"shortEmaPeriod": 12, "longEmaPeriod": 26},
    "BOLLINGER_BANDS": {"period": 20, "multiplier": 2.0},
}


@dataclass(slots=True)
class Peer:
    target: str = ""
    asked: list[Any] = field(default_factory=list)
    numbers: list[dict[str, float]] = field(default_factory=list)
    answer: dict[str, float] = field(default_factory=lambda: {
        "cumulative_return": 0.25, "annualized_return": 9.0, "sharpe_ratio": 2.0, "sortino_ratio": 3.0,
        "max_drawdown": 0.1, "volatility": 0.001, "win_rate": 0.6, "profit_factor": float("inf"),
        "number_of_trades": 4, "average_trade_duration": 12.0, "alpha": 0.0, "beta": 1.0, "strategy_score": 0.7,
    })  # fmt: skip

    async def run(self, request: Any, context: Any) -> Any:
        """RunBacktest."""
        self.asked.append(request)
        name = request.strategy.strategy_name
        if name not in DEFAULTS or not request.candles:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"Unknown strategy: {name} (a secret of the driver)")
        self.numbers.append(DEFAULTS[name] | _unpacked(request.strategy))
        return protocol.BacktestResult(**self.answer)


def _unpacked(strategy: Any) -> dict[str, float]:
    kind = getattr(strategies_pb2, strategy.parameters.type_url.rpartition(".")[2], None)
    if kind is None:
        return {}
    message = kind()
    strategy.parameters.Unpack(message)
    return {one.name: getattr(message, one.name) for one in kind.DESCRIPTOR.fields}


@asynccontextmanager
async def peer(target: str = "127.0.0.1:0", credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[Peer]:
    """One that serves."""
    found = Peer()
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(
        found.run,
        request_deserializer=protocol.BacktestRequest.FromString,
        response_serializer=protocol.BacktestResult.SerializeToString,
    )
    service = grpc.method_handlers_generic_handler("backtesting.BacktestingService", {"RunBacktest": handler})
    server.add_generic_rpc_handlers((service,))
    bound = server.add_secure_port(target, credentials) if credentials else server.add_insecure_port(target)
    found.target = f"127.0.0.1:{bound}"
    await server.start()
    try:
        yield found
    finally:
        await server.stop(None)
