"""A strategy's state as its events tell it: positions, indicators, orders, profit and loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite
from typing import Any, Literal, Self

import orjson

from quantdeck.domain.event_types import EventType

__all__ = [
    "ActiveOrder",
    "Indicator",
    "OrderBook",
    "Pnl",
    "Position",
    "indicator",
    "number",
    "pnl_of_positions",
    "pnl_of_state",
    "position",
    "told",
]

Direction = Literal["Buy", "Sell"]

_OPENING = {"placed"}
_CLOSING = {"filled", "cancelled", "canceled", "rejected", "expired"}
_SLACK = 1e-9
"""Executed parts of an order may add up to a little less than the whole."""


@dataclass(frozen=True, slots=True)
class Position:
    """The last word on a security. One that was closed stays, with quantity 0 and what it earned."""

    symbol: str
    quantity: float | None
    average_price: float | None
    unrealized: float | None
    realized: float | None


@dataclass(frozen=True, slots=True)
class Indicator:
    name: str
    symbol: str
    value: float | None
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ActiveOrder:
    """An order that was placed and not ended; `filled` of its `quantity` is executed."""

    order_id: str
    symbol: str
    direction: Direction | None
    quantity: float | None
    price: float | None
    filled: float = 0.0

    @property
    def remaining(self) -> float | None:
        if self.quantity is None or not self.filled:
            return self.quantity
        return round(self.quantity - self.filled, 12)

    @property
    def done(self) -> bool:
        return self.quantity is not None and self.filled >= self.quantity - abs(self.quantity) * _SLACK


@dataclass(frozen=True, slots=True)
class Pnl:
    realized: float
    unrealized: float

    @property
    def total(self) -> float:
        return self.realized + self.unrealized


def told(text: str) -> dict[str, Any]:
    """An event's properties; empty where another program has written what is no object."""
    try:
        read = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def number(value: Any) -> float | None:
    """A property as a number. The original writes decimals as text; what is no finite number is None."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
        value = int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        return None
    return value


def position(properties: Mapping[str, Any]) -> Position:
    """From a PositionUpdate."""
    return Position(
        str(properties.get("SecuritySymbol", "")),
        number(properties.get("Quantity")),
        number(properties.get("AveragePrice")),
        number(properties.get("UnrealizedPnL")),
        number(properties.get("RealizedPnL")),
    )


def indicator(properties: Mapping[str, Any]) -> Indicator:
    """From an IndicatorCalculation."""
    parameters = properties.get("Parameters")
    return Indicator(
        str(properties.get("IndicatorName", "")),
        str(properties.get("SecuritySymbol") or ""),
        number(properties.get("Value")),
        parameters if isinstance(parameters, dict) else {},
    )


def pnl_of_state(properties: Mapping[str, Any]) -> Pnl:
    """From a StateChange of StateType PnL: what its StateAfter says. Where only a total is told, it is realized."""
    after = properties.get("StateAfter")
    if not isinstance(after, Mapping):
        return Pnl(number(after) or 0.0, 0.0)
    said = {key.lower().removesuffix("pnl"): number(value) for key, value in after.items()}
    unrealized = said.get("unrealized") or 0.0
    realized = said.get("realized")
    if realized is None:
        total = said.get("total", said.get(""))
        realized = 0.0 if total is None else total - unrealized
    return Pnl(realized, unrealized)


def pnl_of_positions(positions: Iterable[Position]) -> Pnl:
    """Their sum; what a position does not say counts as nothing."""
    held = list(positions)
    return Pnl(sum(one.realized or 0.0 for one in held), sum(one.unrealized or 0.0 for one in held))


@dataclass(slots=True)
class OrderBook:
    """The orders that are open, as events are seen in time order."""

    orders: dict[str, ActiveOrder] = field(default_factory=dict)

    def see(self, kind: EventType, order_id: str, properties: Mapping[str, Any]) -> None:
        """One event of an order: placed, executed in part or whole, rejected or otherwise ended."""
        if kind == "OrderRejection":
            self.orders.pop(order_id, None)
        elif kind == "TradeExecution":
            self._executed(order_id, number(properties.get("Quantity")) or 0.0)
        elif kind == "StateChange":
            self._changed(order_id, properties)

    def _executed(self, order_id: str, quantity: float) -> None:
        order = self.orders.get(order_id)
        if order is None:
            return
        order = replace(order, filled=order.filled + abs(quantity))
        if order.done or order.quantity is None:
            del self.orders[order_id]
        else:
            self.orders[order_id] = order

    def _changed(self, order_id: str, properties: Mapping[str, Any]) -> None:
        status = str(properties.get("OrderStatus", "")).lower()
        if status in _CLOSING:
            self.orders.pop(order_id, None)
        elif status in _OPENING:
            before = self.orders.get(order_id)
            self.orders[order_id] = ActiveOrder(
                order_id,
                str(properties.get("SecuritySymbol") or ""),
                _direction(properties.get("Direction")),
                number(properties.get("Quantity")),
                number(properties.get("Price")),
                0.0 if before is None else before.filled,
            )

    def dump(self) -> list[list[Any]]:
        """As plain data, for a checkpoint."""
        return [
            [one.order_id, one.symbol, one.direction, one.quantity, one.price, one.filled]
            for one in self.orders.values()
        ]

    @classmethod
    def load(cls, dumped: Iterable[list[Any]]) -> Self:
        return cls({one[0]: ActiveOrder(*one) for one in dumped})


def _direction(said: Any) -> Direction | None:
    words: dict[str, Direction] = {"buy": "Buy", "sell": "Sell"}
    return words.get(str(said).lower())
