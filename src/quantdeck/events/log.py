"""The writer: events are gathered and written in batches, each of them whole or not at all."""

from __future__ import annotations

import atexit
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid4

import orjson

from quantdeck.domain import event_times
from quantdeck.domain.event_rules import Problem
from quantdeck.events.books import Books
from quantdeck.events.file import EventLogError, LogFile
from quantdeck.events.ids import Ids, guid_bytes, guid_text
from quantdeck.events.row import Given, Row, Rules, row, time_of, written
from quantdeck.events.run import Run, Time

__all__ = ["EventLog"]

log = logging.getLogger(__name__)

_INSERT = """
    INSERT INTO events (event_id, run, at, type, severity, category, properties, parent, errors)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COUNT = """
    INSERT INTO counts (run, type, severity, events) VALUES (?, ?, ?, ?)
    ON CONFLICT (run, type, severity) DO UPDATE SET events = events + excluded.events
"""
_RUN = """
    INSERT INTO runs (run_id, strategy, parameters, config_hash, started, ended, created)
    VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING run
"""
_REJOIN = """
    UPDATE runs SET completed = NULL, failed = 0 WHERE run_id = ?
    RETURNING run, started, ended, (SELECT ifnull(max(e.at), 0) FROM events e WHERE e.run = runs.run)
"""
_FINISH = """
    UPDATE runs SET completed = ?2, failed = ?3,
        started = ifnull(started, (SELECT min(at) FROM events WHERE run = ?1)),
        ended = ifnull(ended, (SELECT max(at) FROM events WHERE run = ?1))
    WHERE run = ?1
"""
_COUNTED = itemgetter(Row._fields.index("run"), Row._fields.index("type"), Row._fields.index("severity"))
_open: weakref.WeakSet[EventLog] = weakref.WeakSet()


class EventLog:
    """A log that is being written. Threads may share one; processes open one each.

    A batch is written when it has `batch` events or its first is `flush_s` old, and at the end: of a run, of the log,
    of the program. Whoever kills the process takes the open batch with it and nothing else.
    """

    def __init__(self, path: Path, *, batch: int, flush_s: float, busy_s: float) -> None:
        self._file = LogFile(path, busy_s=busy_s)
        self._batch, self._flush_s = batch, flush_s
        self._process = os.getpid()
        self._ids = Ids()
        self._books = Books()
        self._lock = threading.RLock()
        self._rows: list[Row] = []
        self._oldest_s = 0.0
        self._began = threading.Condition(self._lock)
        self._flusher: threading.Thread | None = None
        self._closed = False
        _open.add(self)

    @classmethod
    def open(cls, path: str | Path, *, batch: int = 1000, flush_s: float = 30.0, busy_s: float = 30.0) -> Self:
        """The log at this path; it is made where there is none, readable by its owner alone.

        `busy_s` is how long it waits for other writers.
        """
        return cls(Path(path).expanduser(), batch=batch, flush_s=flush_s, busy_s=busy_s)

    @property
    def path(self) -> Path:
        return self._file.path

    def run(
        self,
        strategy: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        start: Time | None = None,
        end: Time | None = None,
        run_id: str | UUID | None = None,
        config_hash: str | None = None,
        created_at: Time | None = None,
        guids: bool = True,
    ) -> Run:
        """Begin a run.

        `start` and `end` are the simulated range; without them it is that of the events. `config_hash` is by default
        the SHA-256 of strategy and parameters. `created_at` is when the run becomes known, now unless said: at a fixed
        clock before it there is no such run. `guids=False` lets an OrderId be any text or number.
        """
        known = uuid4() if run_id is None else guid_bytes(run_id)
        if known is None:
            raise EventLogError(f"run_id must be a GUID, not {str(run_id)[:80]!r}")
        key = known.bytes if isinstance(known, UUID) else known
        rules = Rules(0, key, _moment(start), _moment(end), guids)
        if rules.started is not None and rules.ended is not None and rules.ended < rules.started:
            raise EventLogError("the run ends before it starts")
        rules.latest = rules.started or 0
        config = _config(parameters)
        created = _moment(datetime.now(UTC) if created_at is None else created_at)
        said = (
            key,
            strategy,
            None if parameters is None else config,
            config_hash or sha256(f"{strategy or ''}\n{config}".encode()).hexdigest(),
            rules.started,
            rules.ended,
            created,
        )
        with self._mine():
            self._check()
            try:
                with self._file.transaction() as connection:
                    (rules.run,) = connection.execute(_RUN, said).fetchone()
            except sqlite3.IntegrityError as e:
                raise EventLogError(f"there is a run {guid_text(key)} in this log already") from e
        return Run(self, rules)

    def rejoin(self, run_id: str | UUID) -> Run:
        """Go on with a run that was begun before, by this program or another. It is open again."""
        key = guid_bytes(run_id)
        with self._mine():
            self._check()
            with self._file.transaction() as connection:
                row = connection.execute(_REJOIN, (key,)).fetchone()
        if row is None or key is None:
            raise EventLogError(f"there is no run {str(run_id)[:80]} in this log")
        run, started, ended, latest = row
        return Run(self, Rules(run, key, started, ended, guids=False, latest=latest))

    def query(self, sql: str, *values: Any) -> Any:
        """The first row of a question of our own, with ids as they are told; None where there is none."""
        with self._mine():
            self._check()
            with self._file.transaction() as connection:
                row = connection.execute(sql, values).fetchone()
        return None if row is None else tuple(guid_text(cell) if isinstance(cell, bytes) else cell for cell in row)

    def fresh_id(self) -> str:
        """An id that no event has."""
        with self._mine():
            return guid_text(self._ids.fresh())

    def add(self, rules: Rules, given: Given) -> str:
        """Take one event; its id. What `Run`'s methods do."""
        with self._mine():
            self._check()
            rows = self._rows
            if not rows:
                self._begin_batch()
            made = row(given, self._ids.fresh(), rules)
            rows.append(made)
            if len(rows) >= self._batch:
                self.flush()
        return guid_text(made[0])

    def _begin_batch(self) -> None:
        self._oldest_s = time.monotonic()
        if self._flusher is None:
            self._flusher = threading.Thread(target=self._flush_in_time, name="quantdeck-events", daemon=True)
            self._flusher.start()
        self._began.notify()

    def flush(self, beside: Callable[[sqlite3.Connection], None] | None = None) -> None:
        """Write what was gathered. Where that fails nothing of it is lost: the next flush tries again.

        `beside` writes more into the same transaction.
        """
        with self._mine():
            self._check()
            if not self._rows and beside is None:
                return
            rows = self._rows
            try:
                self._write(rows, beside)
            except sqlite3.IntegrityError:
                self._rows = rows = self._renamed(rows)
                self._write(rows, beside)
            self._rows = []

    def _write(self, rows: list[Row], beside: Callable[[sqlite3.Connection], None] | None) -> None:
        counted = Counter(map(_COUNTED, rows))
        with self._file.transaction() as connection:
            connection.executemany(_INSERT, rows)
            connection.executemany(_COUNT, [(*key, events) for key, events in counted.items()])
            self._books.keep(connection, rows)
            if beside is not None:
                beside(connection)

    def _renamed(self, rows: list[Row]) -> list[Row]:
        """The rows, of which those whose id is taken have another, and say so."""
        with self._file.transaction() as connection:
            taken = {
                (made.run, made.event_id)
                for made in rows
                if connection.execute(
                    "SELECT 1 FROM events WHERE run = ? AND event_id = ?", (made.run, made.event_id)
                ).fetchone()
            }
        out = []
        for made in rows:
            if (made.run, made.event_id) in taken:
                wrong = Problem("EventId", f"Another event has the id {guid_text(made.event_id)}")
                errors = [*orjson.loads(made.errors or "[]"), wrong.entry()]
                made = made._replace(event_id=self._ids.fresh(), errors=orjson.dumps(errors).decode())  # noqa: PLW2901
            taken.add((made.run, made.event_id))
            out.append(made)
        return out

    def finish(self, rules: Rules, *, failed: bool) -> None:
        """The end of a run. What `Run.finish` does."""
        at = event_times.micros(datetime.now(UTC))

        def complete(connection: sqlite3.Connection) -> None:
            connection.execute(_FINISH, (rules.run, at, failed))

        self.flush(complete)

    def close(self) -> None:
        """Write what is left, then close. A second time does nothing."""
        with self._mine():
            if self._closed:
                return
            try:
                self.flush()
            finally:
                self._closed = True
                self._began.notify()
                self._file.close()
                _open.discard(self)

    def _mine(self) -> threading.RLock:
        """The lock, unless this process is a fork: there it may be held for ever by a thread that was left behind."""
        if os.getpid() != self._process:
            raise EventLogError(f"the log {self.path} was opened by another process; open it in each")
        return self._lock

    def _check(self) -> None:
        if self._closed:
            raise EventLogError(f"the log {self.path} was closed")

    def _flush_in_time(self) -> None:
        """What the thread does: no batch grows older than it may."""
        with self._lock:
            while not self._closed:
                left_s = self._oldest_s + self._flush_s - time.monotonic() if self._rows else None
                if left_s is None or left_s > 0:
                    self._began.wait(left_s)
                    continue
                try:
                    self.flush()
                except EventLogError as e:
                    log.warning("events_not_flushed", extra={"fields": {"why": str(e), "events": len(self._rows)}})
                    self._oldest_s = time.monotonic()  # the next attempt is as far away

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _config(parameters: Mapping[str, Any] | None) -> str:
    """Parameters as JSON, the same whatever their order."""
    try:
        return written(dict(parameters or {}), orjson.OPT_SORT_KEYS).decode()
    except (TypeError, ValueError, RecursionError) as e:
        raise EventLogError(f"a run's parameters cannot be written as JSON: {e}") from e


def _moment(told: Any) -> int | None:
    if told is None:
        return None
    if (at := time_of(told)) is None:
        raise EventLogError(
            f"a run's start, end and created_at must be times such as 2026-01-15T09:30:00Z, not {str(told)[:80]!r}"
        )
    return event_times.micros(at)


@atexit.register
def _close_all() -> None:
    for opened in list(_open):
        if opened._process != os.getpid():  # noqa: SLF001 - what a parent process has open is the parent's to close
            continue
        try:
            opened.close()
        except EventLogError as e:  # the others have something to write as well
            log.error("events_lost_at_exit", extra={"fields": {"why": str(e)}})  # noqa: TRY400
