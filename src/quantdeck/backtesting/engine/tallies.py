"""What a stretch of trading came to, added up as it goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quantdeck.domain.arrays import Floats

__all__ = ["Tally"]

_STILL = 1e-12


@dataclass(frozen=True, slots=True)
class Tally:
    """Closed trades, how many of them won, what they earned as fractions added up; and how equity moved.

    `moves` counts changes from close to close, `mean` is theirs, `squares` the sum of squares about it.
    """

    trades: int = 0
    winning: int = 0
    earned: float = 0.0
    moves: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def stored(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def after(self, changes: Floats, returns: Sequence[float]) -> Tally:
        """The same with these changes of equity, and with trades that closed at these returns."""
        more, moves = len(changes), self.moves + len(changes)
        mean, squares = self.mean, self.squares
        if more:
            other = float(changes.mean())
            apart = other - self.mean
            mean += apart * more / moves
            squares += float(((changes - other) ** 2).sum()) + apart**2 * self.moves * more / moves
        won = sum(one > 0.0 for one in returns)
        return Tally(self.trades + len(returns), self.winning + won, self.earned + sum(returns), moves, mean, squares)

    def sharpe(self, per_year: float) -> float | None:
        """Annual; None for fewer than two changes, or where nothing moved."""
        spread = math.sqrt(self.squares / (self.moves - 1)) if self.moves > 1 else 0.0
        found = self.mean / spread * math.sqrt(per_year) if spread > _STILL else math.nan
        return found if math.isfinite(found) else None
