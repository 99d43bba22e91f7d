"""A process that computes points: the task first, then batches of points, each answered with its outcomes.

It ends with its input, and so with whoever started it, however that one ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import IO, Any

from quantdeck.backtesting.sweeps import Task
from quantdeck.backtesting.sweeps.frames import framed, receive_sync

__all__ = ["main", "serve"]

READY = "ready"


def serve(asked: IO[bytes], told: IO[bytes], made: Callable[[Task], Task] = lambda task: task) -> None:
    """Answer until the input ends, by what is made of the task."""

    def tell(what: Any) -> None:
        told.write(framed(what))
        told.flush()

    try:
        task = made(receive_sync(asked))
        tell(READY)
        while True:
            tell(task.outcomes(receive_sync(asked)))
    except (EOFError, BrokenPipeError):
        return


def main() -> None:
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
