"""Folders and files that others change: whether they are still as they were, and one writer at a time."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from quantdeck.sources.candles.layout import parsed

__all__ = ["Folder", "Mark", "is_settled", "mark", "writing"]

_TICK_NS = 20_000_000
"""What a file system's clock may need for its next tick: two changes within it can look like one."""


class Mark(NamedTuple):
    """Another one when a file was changed or replaced."""

    inode: int
    size: int
    written_ns: int
    changed_ns: int


def mark(path: str | Path) -> Mark | None:
    """Of a file or folder; None where it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - each read of a bar does this
    except FileNotFoundError:
        return None
    return Mark(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def is_settled(seen: Mark) -> bool:
    """Whether a later change is sure to give another mark."""
    return not 0 <= time.time_ns() - seen.changed_ns < _TICK_NS


class Folder:
    """Which months there are of which symbols, in one folder of files."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = str(root / name)
        self.name = name
        self.symbols: Mapping[str, tuple[int, ...]] = {}
        self._seen: Mark | None = None
        self._is_settled = False

    def is_current(self) -> bool:
        return self._is_settled and mark(self.path) == self._seen

    def look(self) -> None:
        """List it anew. It blocks."""
        seen = mark(self.path)
        found: dict[str, list[int]] = {}
        if seen is not None:
            for file in os.listdir(self.path):  # noqa: PTH208 - names are all that is wanted
                if (known := parsed(self.name, file)) is not None:
                    found.setdefault(known[0], []).append(known[1])
        self.symbols = {symbol: tuple(sorted(months)) for symbol, months in sorted(found.items())}
        self._seen, self._is_settled = seen, seen is None or is_settled(seen)


@asynccontextmanager
async def writing(root: Path) -> AsyncIterator[None]:
    """While this is entered nobody else writes here, of whatever process; one that is killed lets go of it."""
    descriptor = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _taken(descriptor):  # noqa: ASYNC110 - nothing tells when another process lets go
            await asyncio.sleep(random.uniform(0.002, 0.02))  # noqa: S311 - so that two do not step in time
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    """Windows has no such locks: there one process writes."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
