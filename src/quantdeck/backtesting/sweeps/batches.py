"""What is left of a sweep, in pieces that are worth sending."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import islice
from math import ceil

from quantdeck.backtesting.sweeps import Outcome, Point

__all__ = ["LEAST_S", "USUAL_S", "Batches"]

LEAST_S, USUAL_S = 0.05, 0.25
"""How long a piece takes at least, so that handing it out is no matter, and where there is plenty."""

TRIES = 3


class Batches:
    """Points are handed out once, and again if whoever had them ended.

    The first pieces are single points, by which it is known how long one takes.
    """

    def __init__(self, points: Iterable[Point], runners: int = 1) -> None:
        self.runners = runners  # which whoever has them says
        self._left = deque(points)
        self._alone: deque[Point] = deque()  # one of these may have ended its process: each is tried by itself
        self._tries: Counter[int] = Counter()
        self._point_s: float | None = None

    def __len__(self) -> int:
        return len(self._left) + len(self._alone)

    def take(self) -> list[Point]:
        """The next piece; nothing where all is handed out."""
        if self._alone:
            return [self._alone.popleft()]
        batch = list(islice(self._left, self._size()))
        for _ in batch:
            self._left.popleft()
        return batch

    def done(self, points: int, took_s: float) -> None:
        """How long a piece of so many took, to whoever computed it."""
        each_s = took_s / points
        self._point_s = each_s if self._point_s is None else 0.7 * self._point_s + 0.3 * each_s

    def lost(self, batch: list[Point]) -> list[Outcome]:
        """Whoever had these ended before it told of them. Which are given up, as it was so often."""
        given_up = []
        for point in batch:
            self._tries[point[0]] += len(batch) == 1
            if self._tries[point[0]] >= TRIES:
                problem = f"the process that computed it ended, {TRIES} times"
                given_up.append(Outcome(point[0], None, problem, lost=True))
            else:
                self._alone.append(point)
        return given_up

    def _size(self) -> int:
        if self._point_s is None:
            return 1
        each_s = max(self._point_s, 1e-7)
        fair = len(self._left) // (2 * self.runners)  # towards the end small ones, so that all end together
        return max(ceil(LEAST_S / each_s), min(ceil(USUAL_S / each_s), fair), 1)
