"""Numbers as they are written, for sums that people check by hand."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

__all__ = ["exact", "total"]


@lru_cache(maxsize=4096)
def exact(number: float) -> Decimal:
    """The number that is written, not the float that is next to it: 1.1 is eleven tenths."""
    return Decimal(repr(number))


def total(numbers: Iterable[float]) -> float:
    """Their sum."""
    return float(sum(map(exact, numbers), Decimal()))
