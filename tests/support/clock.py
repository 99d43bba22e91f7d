"""Time that a test moves by hand."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["INSTANT", "Ticks"]

INSTANT = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
"""Where the world stands still, when a test wants it to."""


class Ticks:
    """Monotonic seconds."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
