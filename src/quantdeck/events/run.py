"""A run while it is written: a context, and a method for each type of event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from uuid import UUID

from quantdeck.domain.event_types import Category, EventType, Severity
from quantdeck.events.ids import guid_text
from quantdeck.events.row import Given, Rules

if TYPE_CHECKING:
    from quantdeck.events.log import EventLog

__all__ = ["Run", "Time"]

Direction = Literal["Buy", "Sell"]
Id = str | UUID
Time = datetime | str | float
"""Simulated: text in ISO 8601, or a number since 1970 in the unit of its size, seconds to nanoseconds."""
Number = Any  # int, float, Decimal, a number of numpy


class Run:
    """Writes the events of one backtest. Each method answers the event's id, to be another's `parent`.

    Times are simulated; one without an offset is UTC. An event that lacks something, or holds what it should not, is
    kept with its validation errors and never refused. Keywords that a method does not know become properties, so they
    are spelt as those are: `Commission=1.0`.
    """

    def __init__(self, log: EventLog, rules: Rules) -> None:
        self._log = log
        self._rules = rules
        self.id = guid_text(rules.run_id)

    def event(
        self,
        kind: EventType,
        at: Time,
        properties: Mapping[str, Any],
        *,
        parent: Id | None = None,
        severity: Severity | None = None,
        category: Category | None = None,
        event_id: Id | None = None,
    ) -> str:
        """Any event, with its properties as the spec spells them."""
        return self._log.add(self._rules, Given(kind, at, properties, parent, severity, category, event_id))

    @property
    def key(self) -> int:
        """What it is called inside its file."""
        return self._rules.run

    def take(self, given: Given) -> str:
        """An event that somebody else has told."""
        return self._log.add(self._rules, given)

    def order(
        self,
        at: Time,
        symbol: str,
        direction: Direction,
        quantity: Number,
        price: Number = None,
        *,
        order_id: Id | None = None,
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """An order was placed: a StateChange, since the log has no type of its own for it.

        Without an `order_id` the order is called as its event, so that the answer is both.
        """
        event_id = self._log.fresh_id()
        said = {
            "StateType": "Order",
            "OrderStatus": "Placed",
            "OrderId": _id(order_id) or event_id,
            "SecuritySymbol": symbol,
            "Direction": direction,
            "Quantity": quantity,
            "Price": price,
            **more,
        }
        return self._log.add(self._rules, Given("StateChange", at, said, parent, None, None, event_id))

    def order_ended(
        self,
        at: Time,
        order_id: Id,
        status: Literal["Filled", "Cancelled", "Expired"],
        *,
        symbol: str | None = None,
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """An order came to its end without, or beside, an execution."""
        said = {"StateType": "Order", "OrderStatus": status, "OrderId": _id(order_id), **more}
        if symbol is not None:
            said["SecuritySymbol"] = symbol
        return self._log.add(self._rules, Given("StateChange", at, said, parent))

    def trade(
        self,
        at: Time,
        symbol: str,
        direction: Direction,
        quantity: Number,
        price: Number,
        *,
        order_id: Id | None = None,
        commission: Number = 0.0,
        slippage: Number = 0.0,
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """An order was executed, in part or whole."""
        said = {
            "OrderId": _id(order_id),
            "SecuritySymbol": symbol,
            "Direction": direction,
            "Quantity": quantity,
            "Price": price,
            "Commission": commission,
            "Slippage": slippage,
            **more,
        }
        return self._log.add(self._rules, Given("TradeExecution", at, said, parent))

    def rejection(
        self,
        at: Time,
        symbol: str,
        reason: str,
        *,
        order_id: Id | None = None,
        quantity: Number = None,
        price: Number = None,
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """An order was refused."""
        said = {
            "OrderId": _id(order_id),
            "SecuritySymbol": symbol,
            "RejectionReason": reason,
            "RequestedQuantity": quantity,
            "RequestedPrice": price,
            **more,
        }
        return self._log.add(self._rules, Given("OrderRejection", at, said, parent))

    def indicator(
        self,
        at: Time,
        symbol: str,
        name: str,
        value: Number,
        parameters: Mapping[str, Any] | None = None,
        *,
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """An indicator has a new value."""
        said = {
            "IndicatorName": name,
            "SecuritySymbol": symbol,
            "Value": value,
            "Parameters": {} if parameters is None else parameters,
            **more,
        }
        return self._log.add(self._rules, Given("IndicatorCalculation", at, said, parent))

    def position(
        self,
        at: Time,
        symbol: str,
        quantity: Number,
        average_price: Number,
        *,
        unrealized_pnl: Number = 0.0,
        realized_pnl: Number = 0.0,
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """What is held of a security, all in all."""
        said = {
            "SecuritySymbol": symbol,
            "Quantity": quantity,
            "AveragePrice": average_price,
            "UnrealizedPnL": unrealized_pnl,
            "RealizedPnL": realized_pnl,
            **more,
        }
        return self._log.add(self._rules, Given("PositionUpdate", at, said, parent))

    def pnl(
        self, at: Time, *, realized: Number, unrealized: Number = 0.0, parent: Id | None = None, **more: Any
    ) -> str:
        """Profit and loss of the whole strategy."""
        after = {"Realized": realized, "Unrealized": unrealized}
        said = {"StateType": "PnL", "StateAfter": after, **more}
        return self._log.add(self._rules, Given("StateChange", at, said, parent, None, "Performance"))

    def state(
        self,
        at: Time,
        state_type: Literal["Position", "PnL", "Indicator", "Order"],
        after: Any,
        *,
        before: Any = None,
        reason: str | None = None,
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """Something else has changed, and why."""
        said = {"StateType": state_type, "StateBefore": before, "StateAfter": after, "ChangeReason": reason, **more}
        return self._log.add(self._rules, Given("StateChange", at, said, parent))

    def market_data(
        self,
        at: Time,
        symbol: str,
        data: Mapping[str, Any],
        *,
        data_type: Literal["Candle", "Tick", "Level2"] = "Candle",
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """What the strategy was shown."""
        said = {"SecuritySymbol": symbol, "DataType": data_type, "Data": data, **more}
        return self._log.add(self._rules, Given("MarketDataEvent", at, said, parent))

    def risk(
        self,
        at: Time,
        risk_type: str,
        *,
        threshold: Number = None,
        current_value: Number = None,
        action: str | None = None,
        parent: Id | None = None,
        **more: Any,
    ) -> str:
        """A limit was reached."""
        said = {"RiskType": risk_type, "Threshold": threshold, "CurrentValue": current_value, "Action": action, **more}
        return self._log.add(self._rules, Given("RiskEvent", at, said, parent))

    def finish(self, *, failed: bool = False) -> None:
        """Write what is left, and mark the run as complete, or as one that failed."""
        self._log.finish(self._rules, failed=failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(failed=kind is not None)


def _id(told: Id | None) -> str | None:
    return told if told is None or isinstance(told, str) else str(told)
