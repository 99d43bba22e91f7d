"""What a sweep has done so far, so that one that was killed goes on where it stopped.

A file of JSON lines: what the sweep is, then an outcome in each. It is named by what was asked, so whoever asks the
same again finds it, and it is gone when the sweep is finished. A line that was not written whole counts as none.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import orjson

from quantdeck.backtesting.engine import Metrics
from quantdeck.backtesting.sweeps import Outcome

__all__ = ["Journal", "JournalInUseError", "digest"]

_KEPT_S = 30 * 86_400
"""A sweep with which nobody has gone on for so long is forgotten."""


class JournalInUseError(RuntimeError):
    """The same sweep is running already."""


def digest(*what: Any) -> str:
    """The same for the same things: JSON values, and whatever has bytes."""
    found = sha256()
    for one in what:
        data = orjson.dumps(one, option=orjson.OPT_SORT_KEYS) if isinstance(one, dict | list | tuple | str) else one
        found.update(sha256(data).digest())
    return found.hexdigest()


class Journal:
    """One that is open, and locked, so that nobody else goes on with the same sweep."""

    def __init__(self, path: Path, file: int) -> None:
        self._path, self._file = path, file
        self.head: dict[str, Any] | None = None
        """What `begin` said of the sweep that is gone on with; None for one that begins."""
        self.done: list[Outcome] = []

    @classmethod
    @contextmanager
    def open(cls, folder: Path, asked: str) -> Iterator[Self]:
        """The journal of what was asked. Raises JournalInUseError where it is being written to."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _forget_old(folder)
        path = folder / f"{asked}.jsonl"
        file = _locked(path)
        journal = cls(path, file)
        try:
            journal._read()
            yield journal
        finally:
            if not journal.done:
                journal.remove()  # there is nothing to go on with
            os.close(file)

    def begin(self, head: dict[str, Any]) -> None:
        """Of a sweep of which nothing is done."""
        os.ftruncate(self._file, 0)
        self.head, self.done = head, []
        self._write([head])

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """What is worth remembering of these: a point whose process ended is tried again."""
        new = [one for one in outcomes if not one.lost]
        self._write(
            [one.number, None if one.metrics is None else list(one.metrics.stored().values()), one.problem]
            for one in new
        )
        self.done += new

    def remove(self) -> None:
        """Nobody needs it any more."""
        self._path.unlink(missing_ok=True)

    def _write(self, lines: Iterable[Any]) -> None:
        data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        while data:  # a write may be cut short
            data = data[os.write(self._file, data) :]

    def _read(self) -> None:
        size, whole = os.fstat(self._file).st_size, 0
        for number, line in enumerate(os.pread(self._file, size, 0).splitlines(keepends=True)):
            try:
                said: Any = orjson.loads(line) if line.endswith(b"\n") else None
                if number:
                    at, figures, problem = said
                    self.done.append(Outcome(at, None if figures is None else Metrics(*figures), problem))
                elif isinstance(said, dict):
                    self.head = said
                else:
                    break
            except (ValueError, TypeError):
                break
            whole += len(line)
        os.ftruncate(self._file, whole)


def _locked(path: Path) -> int:
    """The file, once it is ours and still the one of this name: whoever had it may have removed it meanwhile."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(file).st_ino:  # noqa: PTH116
                    return file
        except BlockingIOError as error:
            os.close(file)
            raise JournalInUseError("the same sweep is running already; wait for it, or end it") from error
        os.close(file)


def _forget_old(folder: Path) -> None:
    for path in folder.glob("*.jsonl"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_S:
                path.unlink()
