"""A backtest in a process of its own: a job on stdin, how far it is and what it comes to on stdout.

A process can be killed, which a thread cannot; whoever started it does so when nobody waits for the answer any more.
Each frame is its length in four bytes and, pickled, ("done", share), and at the end ("told", what it comes to) or
("failed", kind of error).
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass
from typing import IO, Any

from quantdeck.backtesting.engine import Backtest, Metrics, Terms, run
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import RunnableSpec

__all__ = ["Work", "frames", "main"]


@dataclass(frozen=True, slots=True)
class Work:
    spec: RunnableSpec
    bars: Bars
    terms: Terms
    whole: bool = False
    """Whether the trades and the equity curve are wanted beside the figures."""

    def done(self, tell: Any = lambda share: None) -> Backtest | Metrics:
        made = run(self.spec, self.bars, self.terms, tell)
        return made if self.whole else made.metrics


def frames(data: IO[bytes], out: IO[bytes]) -> None:
    """Do the job that stands in there."""

    def send(*frame: Any) -> None:
        data = pickle.dumps(frame, protocol=5)
        out.write(len(data).to_bytes(4, "big") + data)
        out.flush()

    try:
        work: Work = pickle.load(data)  # noqa: S301 - it comes from the process that started this one
        send("told", work.done(lambda share: send("done", share)))
    except Exception as error:  # noqa: BLE001 - the parent must hear of it, whatever it is
        send("failed", type(error).__name__)


def main() -> None:
    frames(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
