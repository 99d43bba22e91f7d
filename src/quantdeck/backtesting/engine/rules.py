"""When the conditions of a spec hold. A condition on a figure that is not there does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from quantdeck.domain.arrays import Floats, Mask, np
from quantdeck.domain.strategy_specs import Rule

__all__ = ["holding"]


def holding(rules: Iterable[Rule], figures: Mapping[str, Floats]) -> Mask | None:
    """At which bars all of these hold; None for no rules. Those that look at the open trade are left out."""
    masks = [_mask(rule, figures) for rule in rules if rule.indicator is not None]
    return reduce(np.logical_and, masks) if masks else None


def _mask(rule: Rule, figures: Mapping[str, Floats]) -> Mask:
    assert rule.indicator is not None
    figure = figures[rule.indicator]
    if rule.operation in _TURNING:
        return _turning(_TURNING[rule.operation], figure, int(rule.against))
    against = figures[rule.against] if isinstance(rule.against, str) else rule.against
    return _COMPARING[rule.operation](figure, against)


def _above(figure: Floats, other: Floats | float) -> Mask:
    return figure > other


def _below(figure: Floats, other: Floats | float) -> Mask:
    return figure < other


def _crossed_up(figure: Floats, other: Floats | float) -> Mask:
    return _crossed(figure > other, figure < other)


def _crossed_down(figure: Floats, other: Floats | float) -> Mask:
    return _crossed(figure < other, figure > other)


def _crossed(beyond: Mask, before: Mask) -> Mask:
    """Beyond now, and before it when they last were apart: bars in which they meet, or one is missing, tell nothing."""
    apart = np.flatnonzero(beyond | before)
    side = beyond[apart]
    found = np.zeros(len(beyond), dtype=bool)
    found[apart[1:][side[1:] & ~side[:-1]]] = True
    return found


def _turning(further: Callable[[Floats, Floats], Mask], figure: Floats, bars: int) -> Mask:
    """Each of so many bars is further than the one before it."""
    found = np.zeros(len(figure), dtype=bool)
    moved = further(figure[1:], figure[:-1])
    place = np.arange(1, len(figure))
    stood = np.maximum.accumulate(np.where(moved, 0, place))
    found[1:] = place - stood >= bars
    return found


_COMPARING: Mapping[str, Callable[[Floats, Floats | float], Mask]] = {
    "above": _above,
    "below": _below,
    "crossed_up": _crossed_up,
    "crossed_down": _crossed_down,
}
_TURNING: Mapping[str, Callable[[Floats, Floats], Mask]] = {
    "rising": lambda new, old: new > old,
    "falling": lambda new, old: new < old,
}
