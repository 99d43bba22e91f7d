"""Objects over a pipe between two of our own processes: each is its length in eight bytes, and pickled."""

from __future__ import annotations

import pickle
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter  # a worker has no need of it

__all__ = ["framed", "receive", "receive_sync", "send"]

_LENGTH = 8
_PIECE = 2**20


def framed(what: Any) -> bytes:
    data = pickle.dumps(what, protocol=5)
    return len(data).to_bytes(_LENGTH, "big") + data


async def send(out: StreamWriter, data: bytes) -> None:
    """What was framed, in pieces, so that it is not held twice. Raises where the other has ended."""
    view = memoryview(data)
    for begin in range(0, len(view), _PIECE):
        out.write(view[begin : begin + _PIECE])
        await out.drain()


async def receive(source: StreamReader) -> Any:
    """The next; IncompleteReadError where the other has ended."""
    size = int.from_bytes(await source.readexactly(_LENGTH), "big")
    return pickle.loads(await source.readexactly(size))  # noqa: S301 - it comes from a process of ours


def receive_sync(source: IO[bytes]) -> Any:
    """The next; EOFError where the other has ended."""
    head = source.read(_LENGTH)
    if len(head) < _LENGTH:
        raise EOFError
    return pickle.loads(source.read(int.from_bytes(head, "big")))  # noqa: S301 - it comes from a process of ours
