"""Strategy specs for tests, and how another engine would load what we store of them.

The types stand here a second time, as they were found in the engine that the format comes from: `load` knows nothing
of our tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["CONDITION_TYPES", "CROSSING", "INDICATOR_TYPES", "LoadError", "load", "spec"]

_PERIOD = (
    "SMA EMA DEMA TEMA WMA ZLEMA RSI STOCHASTIC_K CCI CMO MFI WILLIAMS_R ROC MOMENTUM TRIX DPO ADX PLUS_DI MINUS_DI "
    "AROON_UP AROON_DOWN ATR BOLLINGER_MIDDLE KELTNER_MIDDLE DONCHIAN_UPPER DONCHIAN_MIDDLE DONCHIAN_LOWER CMF VWAP "
    "STD_DEV"
)
_BARE = "OBV AD PVT NVI PARABOLIC_SAR CLOSE HIGH LOW OPEN VOLUME TYPICAL_PRICE MEDIAN_PRICE"

INDICATOR_TYPES: Mapping[str, str] = {
    **dict.fromkeys(_PERIOD.split(), "period"),
    **dict.fromkeys(_BARE.split(), ""),
    "KAMA": "period fastPeriod=2 slowPeriod=30",
    "MACD": "shortPeriod=12 longPeriod=26",
    "STOCHASTIC_D": "kPeriod=14",
    "AWESOME_OSCILLATOR": "shortPeriod=5 longPeriod=34",
    "BOLLINGER_UPPER": "period multiplier=2.0",
    "BOLLINGER_LOWER": "period multiplier=2.0",
    "KELTNER_UPPER": "period atrPeriod=10 multiplier=2.0",
    "KELTNER_LOWER": "period atrPeriod=10 multiplier=2.0",
    "CHAIKIN_OSCILLATOR": "shortPeriod=3 longPeriod=10",
    "KLINGER_VOLUME_OSCILLATOR": "shortPeriod=10 longPeriod=35",
    "MASS_INDEX": "emaPeriod=9 sumPeriod=25",
    "PREVIOUS": "n=1",
    "CONSTANT": "value",
    "FRAMA": "sc=0.5 fc=20 alpha=0.5",
}
"""Params of each, with the default of those that may be left out."""

CONDITION_TYPES: Mapping[str, str] = {
    "CROSSED_UP": "crosses|value",
    "CROSSED_DOWN": "crosses|value",
    "CROSSOVER": "crosses direction",
    "CROSSES_ABOVE": "value",
    "CROSSES_BELOW": "value",
    **dict.fromkeys(("ABOVE", "BELOW", "OVER", "UNDER"), "other|value"),
    **dict.fromkeys(("OVER_INDICATOR", "UNDER_INDICATOR"), "other"),
    **dict.fromkeys(("OVER_CONSTANT", "UNDER_CONSTANT", "CROSSED_UP_CONSTANT", "CROSSED_DOWN_CONSTANT"), "threshold"),
    **dict.fromkeys(("IS_RISING", "IS_FALLING"), "barCount"),
    **dict.fromkeys(("STOP_GAIN", "STOP_LOSS", "TRAILING_STOP_LOSS"), "percentage"),
}

_DOUBLES = {"multiplier", "value", "sc", "alpha", "threshold", "percentage"}
_STOPS = {"STOP_GAIN", "STOP_LOSS", "TRAILING_STOP_LOSS"}
_PRICES = {"close", "open", "high", "low", "volume"}


def spec(**said: Any) -> dict[str, Any]:
    """One that is right, but for what is said."""
    return {
        "name": "SMA_RSI",
        "indicators": [
            {"id": "sma", "type": "SMA", "input": "close", "params": {"period": "${period}"}},
            {"id": "rsi", "type": "RSI", "input": "close", "params": {"period": 14}},
        ],
        "entry_conditions": [
            {"type": "OVER", "indicator": "close", "params": {"other": "sma"}},
            {"type": "UNDER_CONSTANT", "indicator": "rsi", "params": {"threshold": "${oversold}"}},
        ],
        "exit_conditions": [{"type": "OVER_CONSTANT", "indicator": "rsi", "params": {"threshold": 70}}],
        "parameters": [
            {"name": "period", "type": "INTEGER", "min": 10, "max": 50, "defaultValue": 20},
            {"name": "oversold", "type": "DOUBLE", "min": 15.0, "max": 30.0, "defaultValue": 30.0},
        ],
        **said,
    }


CROSSING: Mapping[str, Any] = {
    "indicators": [{"id": "a", "type": "SMA", "input": "close", "params": {"period": "${period}"}}],
    "entry_conditions": [{"type": "CROSSED_UP", "indicator": "close", "params": {"crosses": "a"}}],
    "exit_conditions": [{"type": "CROSSED_DOWN", "indicator": "close", "params": {"crosses": "a"}}],
    "parameters": [{"name": "period", "type": "INTEGER", "min": 2, "max": 50, "defaultValue": 5}],
}
"""Rules that are in the market while the close is above its average: their signals take turns, and are many."""


class LoadError(Exception):
    """The other engine cannot run it."""


def load(stored: Mapping[str, Any], numbers: Mapping[str, float] | None = None) -> None:
    """Build every indicator in its order and every rule, as an engine does that trusts nothing."""
    given = {one["name"]: one["defaultValue"] for one in stored["parameters"]} | dict(numbers or {})
    known = {"close"}
    _must(bool(stored["indicators"] and stored["entry_conditions"] and stored["exit_conditions"]), "nothing to run")
    for one in stored["indicators"]:
        _must(one.keys() == {"id", "type", "input", "params"}, f"keys {set(one)}")
        _must(one["input"] in known | _PRICES, f"input {one['input']}")
        _indicator(one, given)
        _must(one["id"] not in known or one["type"] == "CLOSE", f"id {one['id']}")
        known |= {one["id"]}
    for part in ("entry_conditions", "exit_conditions"):
        for one in stored[part]:
            _condition(one, known, given, entry=part == "entry_conditions")


def _indicator(one: Mapping[str, Any], given: Mapping[str, float]) -> None:
    takes = dict(([*name.split("="), ""])[:2] for name in INDICATOR_TYPES[one["type"]].split())
    _must(one["params"].keys() <= takes.keys(), f"params {set(one['params'])}")
    values = {name: _number(name, one["params"].get(name, default), given) for name, default in takes.items()}
    if one["type"] == "MACD":
        _must(values["shortPeriod"] <= values["longPeriod"], "its short period is the longer one")


def _condition(one: Mapping[str, Any], known: set[str], given: Mapping[str, float], *, entry: bool) -> None:
    _must(one.keys() <= {"type", "indicator", "params"}, f"keys {set(one)}")
    stop = one["type"] in _STOPS
    _must(not (stop and entry), "a stop in the entry")
    _must(stop != ("indicator" in one), "an indicator where there is none, or none")
    _must(stop or one["indicator"] in known, "an unknown indicator")
    takes = CONDITION_TYPES[one["type"]]
    _must(one["params"].keys() <= set(re.split(r"[ |]", takes)), f"params {set(one['params'])}")
    if "|" in takes:
        _must(len(one["params"]) == 1, "both or neither")
    for name in [name for name in takes.split() if "|" not in name and name not in {"barCount", "direction"}]:
        _must(name in one["params"], f"{name} is missing")
    for name, value in one["params"].items():
        if name in {"crosses", "other"}:
            _must(value in known, f"{name} {value}")
        elif name == "direction":
            _must(value in {"UP", "DOWN"}, f"direction {value}")
        else:
            _number(name, value, given)


def _number(name: str, value: Any, given: Mapping[str, float]) -> float:
    if isinstance(value, str) and (found := re.fullmatch(r"\$\{(\w+)\}", value)):
        value = given[found[1]]
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise LoadError(f"{name} is {value!r}") from None
    if name not in _DOUBLES:
        _must(number == int(number) and 1 <= number < 2**31, f"{name} is {value!r}")
    if name in {"percentage", "multiplier"}:
        _must(number > 0, f"{name} is {value!r}")
    _must(abs(number) < 1e300, f"{name} is {value!r}")
    return number


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise LoadError(otherwise)
