"""A process that computes points, and is ended by those whose `width` is above 1000, as by a lack of memory."""

from __future__ import annotations

import os
import sys

from quantdeck.backtesting.sweeps import Outcome, Point, Task
from quantdeck.backtesting.sweeps.worker import serve


class Fragile(Task):
    def outcomes(self, batch: list[Point]) -> list[Outcome]:
        if any(numbers[2] > 1000 for _, numbers in batch):
            os._exit(9)
        return super().outcomes(batch)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer, made=lambda task: Fragile(task.spec, task.bars, task.terms))
