"""Figures to reach: what quantdeck should measure. A missed one is said, never an error."""

from collections.abc import Mapping
from dataclasses import dataclass

Cell = Mapping[str, float] | str  # what was measured, or the reason why nothing was
Cells = Mapping[str, Cell]  # by peer


@dataclass(frozen=True)
class Figure:
    text: str
    limit: float
    measured: float | None
    unit: str = ""
    strictly_below: bool = False

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        missed = self.measured >= self.limit if self.strictly_below else self.measured > self.limit
        return "not reached" if missed else "reached"


def value(cells: Cells, peer: str, name: str) -> float | None:
    cell = cells.get(peer, "")
    return None if isinstance(cell, str) else cell.get(name)


def ratio(cells: Cells, peer: str, base: str, name: str = "p50_us") -> float | None:
    over, under = value(cells, peer, name), value(cells, base, name)
    return over / under if over is not None and under else None


def times(text: str, cells: Cells, base: str, limit: float) -> Figure:
    """quantdeck's p50 as a multiple of another peer's."""
    return Figure(f"{text}, p50 as a multiple of {base}'s", limit, ratio(cells, "quantdeck", base), "x")
