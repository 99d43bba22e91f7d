"""How well a strategy did, on a scale that can be compared."""

from __future__ import annotations

from typing import Literal

__all__ = ["score"]


def score(metric: Literal["sharpe", "accuracy", "return"], figure: float | None) -> float | None:
    """A metric on 0 to 1. Accuracy is there already; the others are clamp((x + 1) / 3)."""
    if figure is None:
        return None
    scaled = figure if metric == "accuracy" else (figure + 1) / 3
    return min(max(scaled, 0.0), 1.0)
