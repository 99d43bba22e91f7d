"""Strategies by name, as the contract has them: the numbers of their parameters travel in a message of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import DecodeError, Message

from quantdeck.backtesting.messages import Unfit
from quantdeck.backtesting.protocol import strategies_pb2
from quantdeck.backtesting.protocol.strategies_pb2 import ConfigurableStrategyParameters, Strategy

__all__ = ["named", "numbers_of"]

_IRREGULAR = {"BBAND_WILLIAMS_R": "BbandWRParameters", "ELDER_RAY_MA": "ElderRayMAParameters"}
_PREFIX = "type.googleapis.com/"
_PACKAGE = "strategies."

BARE = {"BOLLINGER_BANDS": {"period": 20, "multiplier": 2.0}}
"""What has no message of its own, and the numbers with which it is therefore always run there."""


def named(name: str, numbers: Mapping[str, int | float]) -> Strategy:
    """A strategy of this name with these numbers, in the message that its name has.

    A generic message is understood by few services, and the others run with their defaults and say nothing. Raises
    Unfit where the message has no place for what is asked.
    """
    if name in BARE:
        if other := [key for key, value in numbers.items() if BARE[name].get(key) != value]:
            usual = ", ".join(f"{key} {value:g}" for key, value in BARE[name].items())
            raise Unfit([f"{name} is always run with {usual} there, and {', '.join(map(repr, other))} is another"])
        return Strategy(strategy_name=name)
    message = _message(name)
    return Strategy(
        strategy_name=name,
        parameters=_packed(_generic(numbers) if message is None else _filled(name, message, numbers)),
    )


def numbers_of(strategy: Strategy) -> tuple[dict[str, int | float], bool]:
    """The numbers that a strategy comes with, by name, and whether they came in a message of one strategy only.

    Raises Unfit for a message that is not known. What none were sent for is not among them.
    """
    if not strategy.HasField("parameters") or not strategy.parameters.type_url:
        return {}, False
    kind = strategy.parameters.type_url.rpartition("/")[2]
    known = getattr(strategies_pb2, kind.removeprefix(_PACKAGE), None) if kind.startswith(_PACKAGE) else None
    if known is None or known.DESCRIPTOR.full_name == Strategy.DESCRIPTOR.full_name:
        raise Unfit(
            [f"its parameters are a {kind[:80]!r}, which is not known; send strategies.ConfigurableStrategyParameters"]
        )
    message = known()
    try:
        message.ParseFromString(strategy.parameters.value)
    except DecodeError as error:
        raise Unfit([f"its parameters are no {kind}"]) from error
    if isinstance(message, ConfigurableStrategyParameters):
        return {**message.intValues, **message.doubleValues}, False
    return {field.name: value for field, value in message.ListFields() if not field.is_repeated}, True


def _message(name: str) -> type[Message] | None:
    called = _IRREGULAR.get(name) or "".join(map(str.capitalize, name.split("_"))) + "Parameters"
    found: type[Message] | None = getattr(strategies_pb2, called, None)
    return found


def _packed(message: Message) -> Packed:
    return Packed(type_url=f"{_PREFIX}{message.DESCRIPTOR.full_name}", value=message.SerializeToString())


def _generic(numbers: Mapping[str, int | float]) -> Message:
    whole = {name: value for name, value in numbers.items() if isinstance(value, int)}
    return ConfigurableStrategyParameters(
        intValues=whole, doubleValues={name: value for name, value in numbers.items() if name not in whole}
    )


def _filled(name: str, kind: type[Message], numbers: Mapping[str, Any]) -> Message:
    fields = kind.DESCRIPTOR.fields_by_name
    problems = []
    if unknown := [repr(key) for key in numbers if key not in fields]:
        problems.append(f"{name} has no {', '.join(unknown)} there; it has {', '.join(fields)}")
    for key, field in fields.items():
        if field.type == field.TYPE_INT32 and not float(numbers.get(key, 0)).is_integer():
            problems.append(f"{key} of {name} is a whole number there, not {numbers[key]:g}")
    if problems:
        raise Unfit(problems)
    given = {
        key: int(numbers[key]) if field.type == field.TYPE_INT32 else float(numbers[key])
        for key, field in fields.items()
        if key in numbers and not field.is_repeated
    }
    return kind(**given)
