"""Sums and extremes over a moving window, each taken from the values of its own window alone.

A running sum keeps the rounding errors of all that has left the window, and a sum for each window takes as many steps
as the window is long. Here the series is cut into blocks as long as the window: a window is then the end of one block
and the beginning of the next, and both are read off totals that run within a block.
"""

from __future__ import annotations

from collections.abc import Callable

from quantdeck.domain.arrays import Floats, np

__all__ = ["Term", "greatest", "least", "sums", "sums_from_within"]

Term = Callable[[Floats, Floats], Floats]
"""What of each value is added up: of its distance from the window's reference, and from its place."""


def sums(x: Floats, period: int) -> Floats:
    """The sum of each `period` values; of none where all are."""
    return _merged(np.add, *(_blocks(x, period, 0.0),) * 2, len(x))


def sums_from_within(x: Floats, period: int, *terms: Term) -> tuple[Floats, list[Floats]]:
    """For each window one of its own values, the reference, and sums of terms of all the others' distances from it.

    Being differences inside the window these are small where it is quiet and nothing where it is flat, whatever the
    size of the values or of what has been before. A place is counted from that of the reference.
    """
    blocks = _blocks(x, period, x[-1])
    reference = blocks[:, :1]
    place = np.arange(period, dtype=np.float64)
    here, before = blocks - reference, np.zeros_like(blocks)
    before[:-1] = blocks[:-1] - reference[1:]
    found = [_merged(np.add, term(before, place - period), term(here, place), len(x)) for term in terms]
    return np.repeat(reference[:, 0], period)[period - 1 : len(x)], found


def greatest(x: Floats, period: int) -> Floats:
    """The greatest of each `period` values."""
    return _merged(np.maximum, *(_blocks(x, period, -np.inf),) * 2, len(x))


def least(x: Floats, period: int) -> Floats:
    """The least of each `period` values."""
    return _merged(np.minimum, *(_blocks(x, period, np.inf),) * 2, len(x))


def _blocks(x: Floats, period: int, filling: float) -> Floats:
    padded = np.full(-(-len(x) // period) * period, filling)
    padded[: len(x)] = x
    return padded.reshape(-1, period)


def _merged(total: np.ufunc, before: Floats, here: Floats, length: int) -> Floats:
    """For each window the total of what it has of two blocks: all but the last that end one begin with the next."""
    found: Floats = total.accumulate(here, axis=1)
    if len(before) > 1 and here.shape[1] > 1:
        ends = total.accumulate(before[:-1, :0:-1], axis=1)[:, ::-1]
        total(found[1:, :-1], ends, out=found[1:, :-1])
    return found.ravel()[here.shape[1] - 1 : length]
