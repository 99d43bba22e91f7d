"""Pyth's numbers: integers with an exponent, times in microseconds, channels with a pace."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from typing import Any

__all__ = [
    "CHANNELS",
    "HISTORY_BEGAN",
    "basis_points",
    "channel_step_us",
    "display",
    "exact",
    "is_faster",
    "iso_of_us",
    "microseconds",
    "pace_us",
]

CHANNELS = ("real_time", "fixed_rate@50ms", "fixed_rate@200ms", "fixed_rate@1000ms")
"""The fastest first."""

_REAL_TIME = CHANNELS[0]
_FIXED_RATE = re.compile(r"fixed_rate@([1-9][0-9]{0,5})ms")

HISTORY_BEGAN = datetime(2025, 4, 1, tzinfo=UTC)
"""Nothing older is kept by the service."""

_LARGEST_EXPONENT = 64
_DIGITS = 60


def exact(value: Any) -> int | None:
    """An integer that may be written as a number or as a string of digits; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and len(value) <= _DIGITS and value.isascii():
        digits = value.removeprefix("-")
        return int(value) if digits.isdigit() else None
    return None


def display(mantissa: Any, exponent: Any) -> str | None:
    """What an integer and its exponent mean, every digit of it, and no power of ten; None where one is missing."""
    number, power = exact(mantissa), exact(exponent)
    if number is None or power is None or abs(power) > _LARGEST_EXPONENT:
        return None
    with localcontext(prec=2 * _DIGITS + _LARGEST_EXPONENT):
        return f"{Decimal(number).scaleb(power):f}"


def basis_points(part: Any, whole: Any) -> float | None:
    """A part in ten-thousandths of the whole, to a hundredth; None where there is no whole."""
    of, all_of = exact(part), exact(whole)
    if of is None or not all_of:
        return None
    with localcontext(prec=2 * _DIGITS + _LARGEST_EXPONENT):
        return float(round(Decimal(of) * 10_000 / abs(Decimal(all_of)), 2))


def microseconds(timestamp: float) -> int:
    """A time in seconds, milliseconds or microseconds, told apart by its size, in microseconds.

    Raises ValueError with a sentence for what can be none of them.
    """
    if timestamp <= 0:
        raise ValueError("a timestamp is later than 1970, so it is greater than 0")
    for limit, factor in ((10**10, 1_000_000), (10**13, 1_000), (10**16, 1)):
        if timestamp < limit:
            return int(Decimal(str(timestamp)) * factor)
    raise ValueError("a timestamp is in seconds, milliseconds or microseconds; this one has too many digits")


def pace_us(channel: str) -> int | None:
    """How far apart a channel's updates are at least, by its name; None for what is no channel's."""
    if channel == _REAL_TIME:
        return 1
    said = _FIXED_RATE.fullmatch(channel)
    return None if said is None else int(said[1]) * 1000


def channel_step_us(channel: str) -> int:
    """What a channel's times are multiples of."""
    return pace_us(channel) or 1


def is_faster(channel: str, minimum: str) -> bool:
    """Whether a channel is faster than the fastest that a feed has. A minimum that nobody knows forbids nothing."""
    slowest, asked = pace_us(minimum), pace_us(channel)
    return slowest is not None and asked is not None and asked < slowest


def iso_of_us(at_us: int) -> str:
    """A time in words."""
    at = datetime.fromtimestamp(at_us // 1_000_000, UTC).replace(microsecond=at_us % 1_000_000)
    return at.replace(tzinfo=None).isoformat() + "Z"
