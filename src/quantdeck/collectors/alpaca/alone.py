"""One collector in a home: Alpaca lets one connection in, and two would push each other out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["AlreadyRunning", "alone"]


class AlreadyRunning(Exception):
    """Another collector has this home."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the file's lock, which ends with the process however it ends. Windows has no such locks: nothing is held."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(os.pread(fd, 20, 0).decode("ascii", "replace").strip()) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(fd)
