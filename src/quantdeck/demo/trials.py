"""The figures with which the demo world's implementations came: each was tried on its market before the world began.

First in a backtest of eight weeks, then most of them forward, for the six weeks after those. What they came to since
then is told by `following`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from quantdeck.backtesting.engine import Metrics, Terms, run
from quantdeck.demo.hours import WEEK_S, hours
from quantdeck.demo.world import BEGAN, Row, World
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import RunnableSpec

__all__ = ["implementations", "runnable"]

_BACK, _FORWARD = 8 * WEEK_S, 6 * WEEK_S
_FIGURES = {
    "sharpe": "sharpe_ratio", "accuracy": "win_rate", "return": "total_return", "max_drawdown": "max_drawdown",
    "trades": "trades",
}  # fmt: skip


@lru_cache(16)
def implementations(world: World) -> tuple[Row, ...]:
    """Rows of strategy_implementations."""
    return tuple(row | _tried(row, spec, world.seed) for row, spec in runnable(world))


@lru_cache(16)
def runnable(world: World) -> tuple[tuple[Row, RunnableSpec], ...]:
    """Each implementation, without its figures, and what is run of it."""
    parts = ("name", "indicators", "entry_conditions", "exit_conditions", "parameters")
    specs = {row["spec_id"]: read(**{part: row[part] for part in parts}).spec for row in world.specs()}
    found = []
    for row in world.implementations():
        spec = specs[row["spec_id"]]
        assert spec is not None
        found.append((row, spec.instantiate(row["parameters"])))
    return tuple(found)


def _tried(row: Row, spec: RunnableSpec, seed: int) -> dict[str, Any]:
    end_s = int(BEGAN.timestamp())
    turn_s = end_s - _FORWARD
    terms = Terms(market_of(row["symbol"]))

    def figures(bars: Bars) -> Metrics:
        return run(spec, bars, terms).metrics

    back = figures(hours(seed, row["symbol"], turn_s - _BACK, turn_s))
    forward = figures(hours(seed, row["symbol"], turn_s, end_s)) if row["_forward"] else None
    return _named("backtest", back) | _named("forward", forward)


def _named(when: str, metrics: Metrics | None) -> dict[str, Any]:
    return {f"{when}_{name}": metrics and _rounded(getattr(metrics, figure)) for name, figure in _FIGURES.items()}


def _rounded(figure: float | None) -> float | None:
    return round(figure, 4) if isinstance(figure, float) else figure
