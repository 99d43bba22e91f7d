"""Sweeps: one strategy spec over the same bars with many sets of numbers, each a point.

`points` says which there are, `ranking` which is best; `batches` hands them out to whoever computes, which is `pool`
(the processes of this machine) or `cluster` (Ray's); `journal` remembers what is done, so that a sweep that was killed
goes on; `sweeping` brings them together. A point is computed by itself, so what comes out is the same wherever and in
whatever order that was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quantdeck.backtesting.engine import Metrics, Terms, run
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import StrategySpec, UnfitParametersError

__all__ = ["Numbers", "Outcome", "Point", "SweepFailedError", "Task", "Tell"]

Numbers = tuple[int | float, ...]
"""One for each parameter of the spec, in its order."""

Point = tuple[int, Numbers]
"""With its place among the points of its sweep."""


class SweepFailedError(RuntimeError):
    """No point can be computed at all; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a point came to, or why it came to nothing.

    `lost` is a point whose process ended each time it was tried: that may be another time otherwise.
    """

    number: int
    metrics: Metrics | None
    problem: str = ""
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """What all points of a sweep have in common; it is sent once to each that computes."""

    spec: StrategySpec
    bars: Bars
    terms: Terms = field(default_factory=Terms)

    def parameters(self, numbers: Numbers) -> dict[str, int | float]:
        return {one.name: number for one, number in zip(self.spec.parameters, numbers, strict=True)}

    def outcomes(self, batch: list[Point]) -> list[Outcome]:
        """Each point's, whatever it is: one with which nothing can be computed must not end the others."""
        return [self._outcome(*point) for point in batch]

    def _outcome(self, number: int, numbers: Numbers) -> Outcome:
        try:
            runnable = self.spec.instantiate(self.parameters(numbers))
            return Outcome(number, run(runnable, self.bars, self.terms).metrics)
        except UnfitParametersError as error:
            return Outcome(number, None, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this point's
            return Outcome(number, None, f"the backtest failed with {type(error).__name__}")


Tell = Callable[[list[Outcome]], None]
"""Hears of outcomes as they come, in no order."""
