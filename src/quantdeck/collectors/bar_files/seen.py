"""Which bars of a series a file has had already: a flag for each place, so that many millions need little room."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from quantdeck.domain.timeframes import Timeframe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Seen"]

_PLACES = 1440


class Seen:
    """Counts, as opens come, those that were there before and those that are earlier than one before them."""

    def __init__(self, base: Timeframe) -> None:
        self._base_s = base.seconds
        self._flags: dict[int, Any] = {}
        self.held, self.first_s, self.last_s = 0, 0, 0

    def add(self, opens: NDArray[np.int64]) -> tuple[int, int]:
        """How many of these were there already, and how many came after a later one."""
        import numpy as np

        before = self.held
        latest = np.maximum.accumulate(np.concatenate(([self.last_s if before else opens[0]], opens)))[:-1]
        backwards = int((opens < latest).sum())
        self._mark(opens)
        low, high = int(opens.min()), int(opens.max())
        self.first_s = min(self.first_s, low) if before else low
        self.last_s = max(self.last_s, high) if before else high
        return len(opens) - (self.held - before), backwards

    def _mark(self, opens: NDArray[np.int64]) -> None:
        import numpy as np

        place = np.unique(opens // self._base_s)
        number = place // _PLACES
        cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(place)]
        for first, end in pairwise(cuts):
            chunk = int(number[first])
            flags = self._flags.setdefault(chunk, np.zeros(_PLACES, dtype=bool))
            at = place[first:end] - chunk * _PLACES
            self.held += int((~flags[at]).sum())
            flags[at] = True
