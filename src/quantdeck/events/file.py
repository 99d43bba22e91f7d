"""One log's file, opened for writing: made where there is none, never taken for what it is not."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from quantdeck.connections.sqlite_failures import LOCKED, code, in_our_words
from quantdeck.events.schema import APPLICATION_ID, VERSION, statements

__all__ = ["EventLogError", "LogFile"]

T = TypeVar("T")

_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.02


class EventLogError(Exception):
    """A log cannot be opened or written. The sentence says why; nothing that was handed over is forgotten by it."""


class LogFile:
    """A connection that writes. Not for several threads at once: its owner has the lock."""

    def __init__(self, path: Path, *, busy_s: float) -> None:
        self.path = path.absolute()
        self._busy_s = busy_s
        try:
            self._connection = self._opened()
        except (sqlite3.Error, OSError) as e:
            raise self._told(e) from e

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, 0o600)
        try:
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        self._place = found.st_dev, found.st_ino
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._check_kind()
        # Several processes that switch a new file to WAL at once can each find it locked.
        self.patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").close())
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        if not self._check_kind():
            with self.transaction():
                if not self._check_kind():  # another has been quicker
                    for statement in statements():
                        connection.execute(statement)

    def _check_kind(self) -> bool:
        """Whether the file is a log already; an EventLogError where it is something else."""
        number = self.patiently(lambda: self._pragma("application_id"))
        if number == APPLICATION_ID:
            if (version := self._pragma("user_version")) > VERSION:
                raise EventLogError(
                    f"{self.path} was written by a newer quantdeck (version {version}); upgrade this one"
                )
            return True
        tables = {str(name).lower() for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
        if {"events", "backtestruns"} <= tables:
            raise EventLogError(
                f"{self.path} is a log in the original program's schema, which can be read and not written; "
                "write to a new file"
            )
        if number or tables:
            raise EventLogError(f"{self.path} is another program's database; choose a new file for the log")
        return False

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    @property
    def connection(self) -> sqlite3.Connection:
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Writes that happen together or not at all; failures are EventLogErrors, but for broken rules of a table."""
        try:
            self._check_place()
            self.patiently(lambda: self._connection.execute("BEGIN IMMEDIATE").close())
            try:
                yield self._connection
                self._check_place()
                self.patiently(lambda: self._connection.execute("COMMIT").close())
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.rollback()
                raise
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.Error, OSError) as e:
            raise self._told(e) from e

    def _check_place(self) -> None:
        """A commit to a file that has no name any more would be lost without a word."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._place:
            raise EventLogError(f"{self.path} was removed or exchanged while it was written; open it anew")

    def patiently(self, work: Callable[[], T]) -> T:
        """Do `work`, which does nothing where it finds the file locked, as soon as it is not."""
        give_up, pause = time.monotonic() + self._busy_s, _PAUSE_S
        while True:
            try:
                return work()
            except sqlite3.OperationalError as e:
                if code(e) not in LOCKED or time.monotonic() >= give_up:
                    raise
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _told(self, e: Exception) -> EventLogError:
        if code(e) in LOCKED:
            return EventLogError(f"{self.path} is locked by another program, for longer than {self._busy_s:g} s")
        return EventLogError(f"{self.path}: {in_our_words(e).message}")

    def close(self) -> None:
        self._connection.close()
