"""Rules that look at the open trade: how far the close is from what was paid, or from the highest close since."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from quantdeck.domain.arrays import Floats, Mask, np
from quantdeck.domain.strategy_specs import Rule

__all__ = ["Stops"]

_FIRST_LOOK, _LONGEST_LOOK = 64, 65_536


class Stops:
    """The stop rules of an exit list, of which all must hold, beside the rest of that list if there is any."""

    def __init__(self, rules: Sequence[Rule], close: Floats, beside: Mask | None) -> None:
        # In percent of the price: 93 / 100 of 100 is 93, and 1 - 0.07 of it is a little less.
        self._gained = [100.0 + float(rule.against) for rule in rules if rule.operation == "gained"]
        self._lost = [100.0 - float(rule.against) for rule in rules if rule.operation == "lost"]
        self._fell = [100.0 - float(rule.against) for rule in rules if rule.operation == "fell_from_peak"]
        self._close, self._beside = close, beside

    def first(self, begin: int, paid: float, peak: float = -inf) -> int | None:
        """The first bar, from the one in which the trade began, at whose close they hold; None if there is none.

        From a later one on where `peak` is the highest close of the trade before it.
        """
        look = _FIRST_LOOK
        while begin < len(self._close):
            part = slice(begin, begin + look)
            close = self._close[part]
            hold = np.ones(len(close), dtype=bool) if self._beside is None else self._beside[part].copy()
            for percent in self._gained:
                hold &= close >= paid * percent / 100.0
            for percent in self._lost:
                hold &= close <= paid * percent / 100.0
            if self._fell:
                highest = np.maximum(np.maximum.accumulate(close), peak)
                for percent in self._fell:
                    hold &= close <= highest * percent / 100.0
                peak = highest[-1]
            place = int(hold.argmax())
            if hold[place]:
                return begin + place
            begin, look = begin + len(close), min(look * 4, _LONGEST_LOOK)
        return None
