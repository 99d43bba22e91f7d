"""Numbers in a strategy spec: what counts as one, and where it may stand."""

from __future__ import annotations

import math
import re
from typing import Any

from quantdeck.domain.indicator_types import Slot

__all__ = ["number", "unfit"]

MAX_BARS = 100_000

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def number(given: Any) -> int | float | None:
    """A finite number, also one in quotes; None for anything else."""
    if isinstance(given, str) and len(given) <= 40 and _NUMBER.fullmatch(given.strip()):
        given = float(given)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    return given if abs(given) < 1e15 and math.isfinite(given) else None


def unfit(value: float, slot: Slot) -> str | None:
    """Why a number cannot stand there; None if it can."""
    if slot.whole and not (float(value).is_integer() and 1 <= value <= MAX_BARS):
        return f"must be a whole number from 1 to {MAX_BARS}"
    if slot.above is not None and value <= slot.above:
        return f"must be above {slot.above:g}"
    return None
