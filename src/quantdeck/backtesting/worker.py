"""A backtest in a process of its own: a job on stdin, how far it is and what it comes to on stdout.

A process can be killed, which a thread cannot; whoever started it does so when nobody waits for the answer any more.
Each frame is its length in four bytes and, pickled, ("done", share), and at the end ("told", what it comes to) or
("failed", kind of error).
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO, Any, Protocol

from quantdeck.backtesting.engine import Backtest, Metrics, Terms, run
from quantdeck.backtesting.engine.walk_forward import Split, Verdict, Windows, walk_forward
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import RunnableSpec

__all__ = ["Batch", "Validation", "Work", "Worker", "frames", "main"]


def _nobody(share: float) -> None:
    """Nobody wants to know."""


class Worker(Protocol):
    """What can be done here: it can be pickled, and so can what it comes to."""

    def result(self, tell: Callable[[float], None] = _nobody) -> Any:
        """Do it. `tell` hears which share of it is done."""


@dataclass(frozen=True, slots=True)
class Work:
    """One backtest."""

    spec: RunnableSpec
    bars: Bars
    terms: Terms
    whole: bool = False
    """Whether the trades and the equity curve are wanted beside the figures."""

    def result(self, tell: Callable[[float], None] = _nobody) -> Backtest | Metrics:
        made = run(self.spec, self.bars, self.terms, tell)
        return made if self.whole else made.metrics


@dataclass(frozen=True, slots=True)
class Batch:
    """Several specs, each over the same bars."""

    specs: tuple[RunnableSpec, ...]
    bars: Bars
    terms: Terms

    def result(self, tell: Callable[[float], None] = _nobody) -> list[Metrics]:
        found = []
        for place, spec in enumerate(self.specs, 1):
            found.append(run(spec, self.bars, self.terms).metrics)
            tell(place / len(self.specs))
        return found


@dataclass(frozen=True, slots=True)
class Validation:
    """One walk-forward validation: its verdict, and of each pair of windows the figures only."""

    spec: RunnableSpec
    bars: Bars
    terms: Terms
    windows: Windows

    def result(self, tell: Callable[[float], None] = _nobody) -> tuple[Verdict, list[tuple[Split, Metrics, Metrics]]]:
        verdict = walk_forward(self.spec, self.bars, self.terms, self.windows, tell=tell)
        pairs = [(one.split, one.before.metrics, one.after.metrics) for one in verdict.windows]
        return replace(verdict, windows=()), pairs


def frames(data: IO[bytes], out: IO[bytes]) -> None:
    """Do the job that stands in there."""

    def send(*frame: Any) -> None:
        data = pickle.dumps(frame, protocol=5)
        out.write(len(data).to_bytes(4, "big") + data)
        out.flush()

    try:
        work: Worker = pickle.load(data)  # noqa: S301 - it comes from the process that started this one
        send("told", work.result(lambda share: send("done", share)))
    except Exception as error:  # noqa: BLE001 - the parent must hear of it, whatever it is
        send("failed", type(error).__name__)


def main() -> None:
    frames(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
