"""Events as other programs write them, in the words of the contract.

The original's debug export has a line for each `{"type": "trade", "data": {…}}`, its live logger has events with
camelCase properties, decimals as text and the machine's time in place of the simulated one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from quantdeck.domain.event_state import number
from quantdeck.domain.event_times import instant
from quantdeck.domain.event_types import Category, EventType, Severity

__all__ = ["Alias", "UnknownLineError", "moment", "of_export", "spelt"]

Json = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FLOAT_DIGITS = 16
"""Fewer than so many are kept by any float."""

_NAMES = {
    "action": "Action", "averageprice": "AveragePrice", "changereason": "ChangeReason", "commission": "Commission",
    "currentvalue": "CurrentValue", "data": "Data", "datatype": "DataType", "direction": "Direction",
    "executiontime": "ExecutionTime", "indicatorname": "IndicatorName", "name": "IndicatorName", "orderid": "OrderId",
    "orderstatus": "OrderStatus", "parameters": "Parameters", "pnl": "RealizedPnL", "positionid": "PositionId",
    "price": "Price", "quantity": "Quantity", "realizedpnl": "RealizedPnL", "reason": "RejectionReason",
    "rejectionreason": "RejectionReason", "requestedprice": "RequestedPrice",
    "requestedquantity": "RequestedQuantity", "risktype": "RiskType", "securityid": "SecuritySymbol",
    "securitysymbol": "SecuritySymbol", "sequencenumber": "SequenceNumber", "side": "Direction",
    "slippage": "Slippage", "stateafter": "StateAfter", "statebefore": "StateBefore", "statetype": "StateType",
    "symbol": "SecuritySymbol", "threshold": "Threshold", "unrealizedpnl": "UnrealizedPnL", "value": "Value",
    "volume": "Quantity",
}  # fmt: skip
_DECIMALS = frozenset({
    "AveragePrice", "Commission", "CurrentValue", "Price", "Quantity", "RealizedPnL", "RequestedPrice",
    "RequestedQuantity", "Slippage", "Threshold", "UnrealizedPnL", "Value",
})  # fmt: skip


class UnknownLineError(ValueError):
    """A line of which no event can be made. The sentence says why."""


class Alias(NamedTuple):
    """An event in the contract's words."""

    kind: EventType
    at: datetime | None
    severity: Severity | None
    category: Category | None
    properties: dict[str, Any]


def moment(told: Any) -> datetime | str | None:
    """A time as a number since 1970: seconds as in the older design, else milliseconds, or finer where it is larger."""
    if isinstance(told, str) and not told.lstrip("-").replace(".", "", 1).isdigit():
        return told
    value = told if isinstance(told, int) and not isinstance(told, bool) else number(told)
    if value is None:
        return None
    for unit in (1, 10**3, 10**6, 10**9):
        if abs(value) < 1e11 * unit:
            try:
                if isinstance(value, int):  # exactly: nanoseconds have more digits than a float
                    return _EPOCH + timedelta(microseconds=value * 1_000_000 // unit)
                return _EPOCH + timedelta(seconds=value / unit)
            except OverflowError:
                return None
    return None


def spelt(properties: Json) -> dict[str, Any]:
    """Properties under the contract's names, decimals as numbers. What it does not name keeps its own.

    A name that is there in the contract's spelling already counts before any other for the same.
    """
    told: dict[str, Any] = {}
    for name, value in properties.items():
        known = _NAMES.get(name.lower(), name) if name[:1].islower() else name
        if known not in told or known == name:
            told[known] = value
    for name in _DECIMALS & told.keys():
        if isinstance(told[name], str) and (value := _exact(told[name])) is not None:
            told[name] = value
    if isinstance(told.get("Direction"), str):
        told["Direction"] = told["Direction"].capitalize()
    if isinstance(told.get("SecuritySymbol"), Mapping):
        told["SecuritySymbol"] = _security(told["SecuritySymbol"])
    return told


def of_export(kind: str, data: Json, run_id: str, symbol: str | None) -> Alias:
    """A line of the debug export. `symbol` is the security of those that do not tell theirs."""
    at = moment(data.get("time"))
    when = at if isinstance(at, datetime) else _instant(at)
    told = {name: value for name, value in data.items() if name != "time" and value is not None}
    if symbol is not None:
        told.setdefault("securityId", symbol)
    match kind:
        case "candle":
            return Alias("MarketDataEvent", when, "Debug", "Data", _candle(told))
        case "trade":
            properties = spelt(told)
            if when is not None:
                properties["ExecutionTime"] = when
            return Alias("TradeExecution", when, "Info", "Execution", properties)
        case "state":
            return _state(when, told, run_id, data.get("time"))
        case _ if kind.startswith("indicator_"):
            return Alias("IndicatorCalculation", when, "Debug", "Analysis", _indicator(kind, told))
    raise UnknownLineError(f"unknown type {kind[:80]!r}")


def _exact(told: Any) -> float | Decimal | None:
    """A number with every digit of a numeral: the original's decimals have up to 28, a float 17."""
    value = number(told)
    if value is None or isinstance(told, float) or (isinstance(told, str) and len(told) < _FLOAT_DIGITS):
        return value
    whole = Decimal(told)
    return value if Decimal(repr(value)) == whole else whole


def _candle(told: Json) -> dict[str, Any]:
    bar = {name.capitalize(): _exact(told.get(name)) for name in ("open", "high", "low", "close", "volume")}
    rest = spelt({name: value for name, value in told.items() if name.capitalize() not in bar})
    return {**rest, "DataType": "Candle", "Data": bar}


def _indicator(kind: str, told: Json) -> dict[str, Any]:
    properties = {name[:1].upper() + name[1:]: value for name, value in spelt(told).items()}
    return {"IndicatorName": kind.removeprefix("indicator_"), "Parameters": {}, **properties}


def _state(at: datetime | None, told: Json, run_id: str, time: Any) -> Alias:
    total, unrealized = number(told.get("pnL")), number(told.get("unrealizedPnL"))
    realized = None if total is None else total - (unrealized or 0.0)
    severity: Severity = "Warning" if str(told.get("processState", "")).lower() in ("stopping", "stopped") else "Info"
    rest = {
        "SecuritySymbol": _security(told.get("securityId")),
        "ProcessState": told.get("processState"),
        "SequenceNumber": told.get("sequenceNumber"),
    }
    quantity = number(told.get("position"))
    if quantity:
        held = {"Quantity": quantity, "UnrealizedPnL": unrealized, "RealizedPnL": realized}
        properties = {**rest, **held, "PositionId": f"pos-{run_id}-{time}"}
        return Alias("PositionUpdate", at, severity, "Portfolio", properties)
    after = {"Realized": realized, "Unrealized": unrealized, "Position": quantity}
    return Alias("StateChange", at, severity, "Portfolio", {**rest, "StateType": "PnL", "StateAfter": after})


def _security(told: Any) -> Any:
    if isinstance(told, Mapping):
        code, board = told.get("securityCode"), told.get("boardCode")
        return f"{code}@{board}" if board else code
    return told


def _instant(told: str | None) -> datetime | None:
    try:
        return None if told is None else instant(told)
    except ValueError:
        return None
