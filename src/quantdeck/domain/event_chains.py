"""Chains of events by their parents, and how far one follows a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

__all__ = ["PLACED", "missing"]

T = TypeVar("T")

PLACED = "OrderPlaced"
"""A word of patterns only: a StateChange whose OrderStatus is Placed. The log has no such type."""


def missing(pattern: Sequence[T], root: Iterable[T], rest: Iterable[Iterable[T]]) -> list[T]:
    """The elements of a pattern that a chain lacks, in the pattern's order; none where it is complete.

    The pattern is an ordered subsequence of the chain, each element another event. Its first is the root. `rest` are
    the other events in time order, each by every word that it answers to.
    """
    if not pattern:
        return []
    found = [pattern[0] in root]
    events = [set(words) for words in rest]
    at = 0
    for wanted in pattern[1:]:
        place = next((place for place in range(at, len(events)) if wanted in events[place]), None)
        found.append(place is not None)
        at = at if place is None else place + 1
    return [wanted for wanted, there in zip(pattern, found, strict=True) if not there]
