"""The words of a backtest's event log. A word's place in its tuple is its code in our files: add only at the end."""

from __future__ import annotations

from typing import Final, Literal, get_args

__all__ = [
    "CATEGORIES",
    "CATEGORY_OF",
    "ENTITIES",
    "EVENT_TYPES",
    "HOT_PATHS",
    "SEVERITIES",
    "SEVERITY_OF",
    "Category",
    "Entity",
    "EventType",
    "Severity",
    "within",
]

EventType = Literal[
    "TradeExecution",
    "OrderRejection",
    "IndicatorCalculation",
    "PositionUpdate",
    "StateChange",
    "MarketDataEvent",
    "RiskEvent",
]
Severity = Literal["Error", "Warning", "Info", "Debug"]
Category = Literal[
    "Execution", "MarketData", "Indicators", "Risk", "Performance",
    "Data", "Analysis", "Portfolio",
]  # fmt: skip
Entity = Literal["OrderId", "SecuritySymbol", "PositionId", "IndicatorName"]

EVENT_TYPES: Final[tuple[EventType, ...]] = get_args(EventType)
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
ENTITIES: Final[tuple[Entity, ...]] = get_args(Entity)

SEVERITY_OF: Final[dict[EventType, Severity]] = {
    "TradeExecution": "Info",
    "OrderRejection": "Warning",
    "IndicatorCalculation": "Debug",
    "PositionUpdate": "Info",
    "StateChange": "Info",
    "MarketDataEvent": "Debug",
    "RiskEvent": "Warning",
}
"""Where nobody says how severe an event is."""

CATEGORY_OF: Final[dict[EventType, Category]] = {
    "TradeExecution": "Execution",
    "OrderRejection": "Execution",
    "IndicatorCalculation": "Indicators",
    "PositionUpdate": "Performance",
    "StateChange": "Execution",
    "MarketDataEvent": "MarketData",
    "RiskEvent": "Risk",
}
"""Likewise its category."""

HOT_PATHS: Final[dict[EventType, str]] = {
    "TradeExecution": "$.Price",
    "OrderRejection": "$.RequestedPrice",
    "IndicatorCalculation": "$.Value",
    "PositionUpdate": "$.RealizedPnL",
    "RiskEvent": "$.CurrentValue",
}
"""The number of each type that is asked for most; our files keep it ready in a column."""

_SUBCATEGORIES: dict[Category, Category] = {"MarketData": "Data", "Indicators": "Analysis", "Performance": "Portfolio"}


def within(category: Category) -> tuple[Category, ...]:
    """A category and the one of the original's code that is part of it."""
    return (category, _SUBCATEGORIES[category]) if category in _SUBCATEGORIES else (category,)
