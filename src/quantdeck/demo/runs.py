"""The demo world's two backtest runs: one strategy that buys when a quick average crosses a slow one, and sells back.

They differ in one parameter. Prices, decisions and ids are a pure function of the seed. Planted in them, for the
tutorial: in the first an order that was never executed and three malformed events, in the second a rejected order.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from math import sin, tau
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from quantdeck.demo.world import World
from quantdeck.domain.event_types import EventType
from quantdeck.events import EventLog, Run

__all__ = ["RUNS", "run_id", "write_runs"]

STRATEGY, SYMBOL, SLOW = "SMA_CROSS", "BTC/USD", 48
RUNS = ({"fast": 10, "slow": SLOW}, {"fast": 20, "slow": SLOW})
BEGAN, ENDED = datetime(2025, 3, 1, tzinfo=UTC), datetime(2025, 3, 31, tzinfo=UTC)
KNOWN = datetime(2025, 4, 2, 9, tzinfo=UTC)
"""When the first became known, and an hour later the second."""

QUANTITY, FEE, START = 0.5, 0.001, 60_000.0
LIMIT_AT, MALFORMED_AT, REJECTED_AT = 2, 3, 3
"""Which entry the planted faults come with, counted from 1."""


def run_id(world: World, number: int) -> str:
    """Of the first or the second run."""
    return str(uuid5(NAMESPACE_URL, f"quantdeck:{world.seed}:backtest:{number}"))


def write_runs(path: Path, world: World) -> str:
    """A new log with both; what is in it, in a few words."""
    for file in (path, *path.parent.glob(f"{path.name}-*")):
        file.unlink(missing_ok=True)
    prices = [_price(world, hour) for hour in range(-SLOW, (ENDED - BEGAN) // timedelta(hours=1))]
    with EventLog.open(path) as log:
        for number, parameters in enumerate(RUNS):
            with log.run(
                STRATEGY,
                parameters,
                start=BEGAN,
                end=ENDED,
                run_id=run_id(world, number),
                created_at=KNOWN + timedelta(hours=number),
            ) as run:
                _Story(world, run, number).tell(prices, parameters["fast"])
    return f"{len(RUNS)} backtest runs"


def _price(world: World, hour: int) -> float:
    """A slow wave, a quick one, and a little chance."""
    slow, quick = world.unit("backtest", "slow"), world.unit("backtest", "quick")
    wave = 0.05 * sin(tau * (hour / 170 + slow)) + 0.012 * sin(tau * (hour / 41 + quick))
    return round(START * (1 + wave + 0.004 * (world.unit("backtest", hour) - 0.5)), 2)


class _Story:
    """One run, told hour by hour."""

    def __init__(self, world: World, run: Run, number: int) -> None:
        self._run, self._number = run, number
        self._ids = (f"{world.seed}:backtest:{number}:{place}" for place in count())
        self._held, self._paid, self._realized, self._entries = 0.0, 0.0, 0.0, 0

    def _id(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"quantdeck:{next(self._ids)}"))

    def tell(self, prices: list[float], fast: int) -> None:
        before = 0.0
        for place in range(SLOW, len(prices)):
            at, price = BEGAN + timedelta(hours=place - SLOW), prices[place]
            quick, slow = _mean(prices[place + 1 - fast : place + 1]), _mean(prices[place + 1 - SLOW : place + 1])
            candle = {"Open": prices[place - 1], "Close": price}
            self._event("MarketDataEvent", at, {"SecuritySymbol": SYMBOL, "DataType": "Candle", "Data": candle})
            cause = self._indicator(at, f"SMA_{fast}", quick, fast)
            self._indicator(at, f"SMA_{SLOW}", slow, SLOW)
            apart = quick - slow
            if before < 0 < apart and not self._held:
                self._enter(at, price, cause)
            elif before > 0 > apart and self._held:
                self._leave(at, price, cause)
            before = apart

    def _indicator(self, at: datetime, name: str, value: float, period: int) -> str:
        said = {"IndicatorName": name, "SecuritySymbol": SYMBOL, "Value": value, "Parameters": {"Period": period}}
        return self._event("IndicatorCalculation", at, said)

    def _enter(self, at: datetime, price: float, cause: str) -> None:
        self._entries += 1
        placed, order = self._order(at, "Buy", QUANTITY, price, Reason="fast above slow", Signal=cause)
        if self._number == 1 and self._entries == REJECTED_AT:
            said = {
                "OrderId": order, "SecuritySymbol": SYMBOL, "RejectionReason": "Insufficient margin",
                "RequestedQuantity": QUANTITY, "RequestedPrice": price,
            }  # fmt: skip
            self._event("OrderRejection", at + timedelta(seconds=1), said, placed)
            return
        self._held, self._paid = QUANTITY, price
        self._executed(at, placed, order, "Buy", price, 0.0)
        if self._number == 0 and self._entries == LIMIT_AT:
            self._order(at + timedelta(minutes=5), "Buy", 0.1, round(price * 0.8, 2), Reason="add on a dip")
        if self._number == 0 and self._entries == MALFORMED_AT:
            self._malformed(at + timedelta(minutes=10), order)

    def _leave(self, at: datetime, price: float, cause: str) -> None:
        placed, order = self._order(at, "Sell", self._held, price, Reason="fast below slow", Signal=cause)
        earned = round((price - self._paid) * self._held - FEE * self._held * (price + self._paid), 2)
        self._realized = round(self._realized + earned, 2)
        self._held = 0.0
        self._executed(at, placed, order, "Sell", price, earned)

    def _order(self, at: datetime, side: str, quantity: float, price: float, **more: str) -> tuple[str, str]:
        placed, order = self._id(), self._id()
        said = {
            "StateType": "Order", "OrderStatus": "Placed", "OrderId": order, "SecuritySymbol": SYMBOL,
            "Direction": side, "Quantity": quantity, "Price": price, **more,
        }  # fmt: skip
        self._run.event("StateChange", at, said, event_id=placed)
        return placed, order

    def _executed(self, at: datetime, placed: str, order: str, side: str, price: float, earned: float) -> None:
        then = at + timedelta(seconds=2)
        said = {
            "OrderId": order, "SecuritySymbol": SYMBOL, "Direction": side, "Quantity": QUANTITY, "Price": price,
            "Commission": round(FEE * QUANTITY * price, 2), "Slippage": 0.0, "RealizedPnL": earned,
        }  # fmt: skip
        trade = self._event("TradeExecution", then, said, placed)
        held = {
            "SecuritySymbol": SYMBOL, "Quantity": self._held, "AveragePrice": self._paid if self._held else 0.0,
            "UnrealizedPnL": 0.0, "RealizedPnL": self._realized,
        }  # fmt: skip
        self._event("PositionUpdate", then, held, trade)

    def _malformed(self, at: datetime, order: str) -> None:
        self._event("TradeExecution", at, {"OrderId": "invalid-guid", "SecuritySymbol": SYMBOL, "Quantity": 0.01})
        self._event("IndicatorCalculation", at, {"IndicatorName": "RSI_14", "SecuritySymbol": SYMBOL, "Value": None})
        self._event("TradeExecution", at, {"OrderId": order, "SecuritySymbol": SYMBOL, "Quantity": 0.0})

    def _event(self, kind: EventType, at: datetime, said: dict[str, object], parent: str | None = None) -> str:
        return self._run.event(kind, at, said, parent=parent, event_id=self._id())


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 4)
