"""How far a long work has come: a bar that moves on a terminal, and a line now and then where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

__all__ = ["Progress"]

_WIDTH = 30
_BAR_S, _LINE_S = 0.1, 5.0


class Progress:
    """Writes to a stream that is not the answer's."""

    def __init__(
        self, stream: TextIO, what: str, clock: Callable[[], float] = time.monotonic, *, unit: str = "rows"
    ) -> None:
        self._stream, self._what, self._clock, self._unit = stream, what, clock, unit
        self._terminal = stream.isatty()
        self._begun = self._told = clock()
        self._drawn = False

    def __call__(self, share: float, rows: int) -> None:
        now = self._clock()
        if now - self._told < (_BAR_S if self._terminal else _LINE_S):
            return
        self._told = now
        share = min(max(share, 0.0), 1.0)
        left = f", {self._left(now, share)} s left" if share > 0.02 else ""
        if not self._terminal:
            self._stream.write(f"{self._what}: {share:.0%}, {rows:,} {self._unit}{left}\n")
        else:
            done = round(share * _WIDTH)
            bar = "#" * done + "." * (_WIDTH - done)
            self._stream.write(f"\r\x1b[K[{bar}] {share:4.0%} {rows:,} {self._unit}{left}")
            self._drawn = True
        self._stream.flush()

    def _left(self, now: float, share: float) -> int:
        return round((now - self._begun) * (1 - share) / share)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
