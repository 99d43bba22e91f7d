"""Between what the engine takes and gives, and the messages of the protocol. Pure; both ends of a connection use it.

What comes in was written by others: `Unfit` says everything that is wrong with it at once.
"""

from __future__ import annotations

__all__ = ["Unfit"]


class Unfit(ValueError):
    """A request that cannot be done, with a sentence for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
