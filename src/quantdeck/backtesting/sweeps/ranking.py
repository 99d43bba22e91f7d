"""Which points are best: by one figure or several, and in the end by their numbers, which no two share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quantdeck.backtesting.engine import Metrics, score
from quantdeck.backtesting.sweeps import Numbers, Outcome

__all__ = ["OBJECTIVES", "UnknownObjectiveError", "figure", "objectives", "ranked"]

# The figure's name in Metrics, and whether more of it is better.
OBJECTIVES: dict[str, tuple[str, bool]] = {
    "sharpe": ("sharpe_ratio", True),
    "sortino": ("sortino_ratio", True),
    "return": ("total_return", True),
    "annualized_return": ("annualized_return", True),
    "drawdown": ("max_drawdown", False),
    "volatility": ("volatility", False),
    "win_rate": ("win_rate", True),
    "profit_factor": ("profit_factor", True),
    "trades": ("trades", True),
    "exposure": ("exposure", False),
    "alpha": ("alpha", True),
    "score": ("", True),
}

_LAST = ("score", "trades")


class UnknownObjectiveError(ValueError):
    """No figure that points can be ranked by."""


@dataclass(frozen=True, slots=True)
class Ranked:
    numbers: Numbers
    metrics: Metrics
    score: float


def objectives(said: str) -> list[str]:
    """A list with commas, and after it what decides between those who are equal in all of it."""
    named = [name.strip().replace("-", "_") for name in said.split(",")]
    for name in named:
        if name not in OBJECTIVES:
            raise UnknownObjectiveError(f"no objective {name[:40]!r}; there are {', '.join(OBJECTIVES)}")
    return list(dict.fromkeys((*named, *_LAST)))


def figure(name: str, found: Metrics) -> float | None:
    """An objective's figure; None where it could not be computed. A profit factor without any loss is infinite."""
    if name == "score":
        return score(found)
    if name == "profit_factor" and found.profit_factor is None and (found.win_rate or 0.0) > 0.0:
        return math.inf
    value: float | None = getattr(found, OBJECTIVES[name][0])
    return value


def ranked(
    points: Sequence[Numbers], outcomes: Iterable[Outcome], by: Sequence[str], least_trades: int
) -> list[Ranked]:
    """The best first. Whoever closed fewer trades comes after all others, and what has no figure after what has one.

    Else a strategy that never trades would have the least drawdown of all.
    """
    found = [(points[one.number], one.metrics) for one in outcomes if one.metrics is not None]

    def key(point: tuple[Numbers, Metrics]) -> tuple[bool, *tuple[float, ...], Numbers]:
        numbers, metrics = point
        return (metrics.trades < least_trades, *(_placed(name, metrics) for name in by), numbers)

    return [Ranked(numbers, metrics, score(metrics)) for numbers, metrics in sorted(found, key=key)]


def _placed(name: str, found: Metrics) -> float:
    value = figure(name, found)
    if value is None:
        return math.inf
    return -value if OBJECTIVES[name][1] else value
