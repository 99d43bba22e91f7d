"""How the embedded store writes bars: 1,440 places to a chunk, a bit for each place, and columns of what is there.

A chunk of one-minute bars is a day; of coarser ones it is as much longer. It begins at a whole multiple of its span
since 1970, and every coarser length that can be derived fills it, so that no derived bar lies across two chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from quantdeck.domain.arrays import np
from quantdeck.domain.candles import COLUMNS, Bars, joined, settled
from quantdeck.domain.timeframes import Timeframe

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PLACES", "Chunk", "chunk_of", "chunks_of", "decoded", "encoded", "merged", "opens"]

PLACES = 1440
_PRESENT_BYTES = PLACES // 8
_BAR_BYTES = 8 * len(COLUMNS)


class Chunk(NamedTuple):
    """A row of the store. `data` is empty where only the places are asked for."""

    chunk: int
    held: int
    present: bytes
    data: bytes = b""


def chunk_of(at_s: int, base: Timeframe) -> int:
    """The number of the chunk that an instant falls into."""
    return at_s // (PLACES * base.seconds)


def chunks_of(bars: Bars, base: Timeframe) -> list[int]:
    """The numbers of those that bars in order fall into."""
    numbers: list[int] = np.unique(bars.time // (PLACES * base.seconds)).tolist()
    return numbers


def encoded(bars: Bars, base: Timeframe) -> list[Chunk]:
    """Bars in order as chunks."""
    place = bars.time // base.seconds
    number = place // PLACES
    place -= number * PLACES
    table = np.vstack([column.astype("<f8", copy=False) for column in list(bars.columns())[1:]])
    cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(bars)]
    made = []
    for first, end in pairwise(cuts):
        there = np.zeros(PLACES, dtype=bool)
        there[place[first:end]] = True
        present = np.packbits(there).tobytes()
        made.append(Chunk(int(number[first]), end - first, present, table[:, first:end].tobytes()))
    return made


def decoded(chunks: Sequence[Chunk], base: Timeframe) -> Bars:
    """Chunks in order as bars; ValueError where they are not what was written."""
    if not chunks:
        return Bars.none()
    flags = _flags(chunks)
    held = [chunk.held for chunk in chunks]
    if held != np.count_nonzero(flags, axis=1).tolist() or any(len(c.data) != c.held * _BAR_BYTES for c in chunks):
        raise ValueError("a chunk does not hold the bars that it names")
    table = np.empty((len(COLUMNS), sum(held)))
    end = 0
    for chunk in chunks:
        first, end = end, end + chunk.held
        table[:, first:end] = np.frombuffer(chunk.data, dtype="<f8").reshape(len(COLUMNS), chunk.held)
    return Bars(_times(chunks, flags, base), *table)


def merged(old: Sequence[Chunk], bars: Bars, base: Timeframe) -> list[Chunk]:
    """What the chunks hold when bars have come to them."""
    return encoded(settled(joined([decoded(old, base), bars])), base)


def opens(chunks: Sequence[Chunk], base: Timeframe, to: Timeframe, end_s: int) -> NDArray[np.int64]:
    """The opens before the end of the bars of a length that can be derived, told by the places alone."""
    if not chunks:
        return np.empty(0, dtype=np.int64)
    flags, many = _flags(chunks), to.seconds // base.seconds
    # By far quicker than any() along an axis as short as this.
    derived = reduce(np.bitwise_or, (flags[:, place::many] for place in range(many)))
    times = _times(chunks, derived, to)
    return times[: int(times.searchsorted(end_s))]


def _flags(chunks: Sequence[Chunk]) -> NDArray[np.bool_]:
    """A row for each chunk, and in it where there is a bar."""
    if any(len(chunk.present) != _PRESENT_BYTES for chunk in chunks):
        raise ValueError("a chunk does not have a bit for each place")
    bits = np.frombuffer(b"".join(chunk.present for chunk in chunks), dtype=np.uint8)
    return np.unpackbits(bits).view(np.bool_).reshape(-1, PLACES)


def _times(chunks: Sequence[Chunk], flags: NDArray[np.bool_], of: Timeframe) -> NDArray[Any]:
    """When what is flagged opens. `of` is the length of a place, so that a row of flags is one chunk long."""
    places = flags.shape[1]
    at = np.flatnonzero(flags)
    if chunks[-1].chunk - chunks[0].chunk == len(chunks) - 1:  # none is missing between them
        at += chunks[0].chunk * places
    else:
        numbers = np.fromiter((chunk.chunk for chunk in chunks), dtype=np.int64, count=len(chunks))
        shift = (numbers - np.arange(len(chunks))) * places
        at += np.repeat(shift, np.count_nonzero(flags, axis=1))
    at *= of.seconds
    return at
