"""Event logs in a SQLite file: our own schema, or that of the program the spec was written for."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson

from quantdeck.connections.databases import Databases
from quantdeck.connections.read_only import ReadOnlyFile
from quantdeck.connections.sqlite_failures import SOURCE
from quantdeck.connections.urls import file_of
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured, QueryFailed, Unreachable
from quantdeck.domain.event_times import micros
from quantdeck.domain.event_types import Category, Entity, EventType, Severity
from quantdeck.events.schema import APPLICATION_ID, VERSION
from quantdeck.settings import Settings
from quantdeck.sources.events import Chain, Event, Events, Found, Run, Slice, Span, State, Totals, layout, original
from quantdeck.sources.events.chains import chain, chains
from quantdeck.sources.events.layout import Layout
from quantdeck.sources.events.pages import in_order_of_writing, of_entity, of_type, with_errors
from quantdeck.sources.events.states import state
from quantdeck.sources.events.sums import totals

__all__ = ["EventFile", "connect", "connect_to", "log_path"]

T = TypeVar("T")

_RUNS = """
    SELECT run, run_id, strategy, parameters, config_hash, started, ended, created, completed, failed FROM runs
    WHERE created <= ?1
"""
_PAGE = f"{_RUNS} ORDER BY created DESC, run DESC LIMIT ? OFFSET ?"
_ONE = f"{_RUNS} AND run_id = ?2"
_COUNT = "SELECT count(*) FROM runs WHERE created <= ?"
_EVENTS = "SELECT count(*) FROM events WHERE run = ?"
_COUNTED = "SELECT ifnull(sum(events), 0) FROM counts WHERE run = ?"


def connect(url: str, settings: Settings, databases: Databases) -> EventFile:
    """The adapter; nothing is opened before the first question."""
    del url, databases
    return connect_to(settings)


def log_path(settings: Settings) -> Path:
    """Where the log is."""
    url = settings.events
    return file_of(url, "QUANTDECK_EVENTS") if url.startswith("sqlite:") else settings.home_path / "events.db"


def connect_to(settings: Settings) -> EventFile:
    """The log that the settings name, for those who ask it without a server."""
    return EventFile(
        log_path(settings),
        source="demo" if settings.is_demo else SOURCE,
        reply_bytes=settings.event_log.reply_kb * 1024,
        connections=settings.event_log.connections,
        require=_requiring(settings),
    )


def _requiring(settings: Settings) -> Callable[[bool], None]:
    """A check before each opening: whether there is a log, and if not, what to do about it."""

    def require(there: bool) -> None:
        if settings.is_unfinished_demo:
            raise Unreachable(
                "No connection to the event log: its demo world is not finished. Where nobody is making it just now, "
                "run `quantdeck demo` again",
                source=SOURCE,
            )
        if there:
            return
        if settings.events.startswith("sqlite:"):
            raise Unreachable(
                "No connection to the event log: the file that QUANTDECK_EVENTS names is missing. Write one with "
                "quantdeck.events.EventLog or `quantdeck import events`, or correct the path",
                source=SOURCE,
            )
        raise NotConfigured(
            "There is no connection to an event log yet. Write one with quantdeck.events.EventLog, import one with "
            "`quantdeck import events`, set QUANTDECK_EVENTS to sqlite:////absolute/path of one, or make a demo world "
            "with `quantdeck demo`",
            source=SOURCE,
            setting="QUANTDECK_EVENTS",
        )

    return require


class EventFile(Events):
    """See the port."""

    def __init__(
        self,
        path: Path,
        *,
        source: str = SOURCE,
        reply_bytes: int = 2**20,
        connections: int = 4,
        require: Callable[[bool], None] = lambda _there: None,
    ) -> None:
        self.source, self.reply_bytes = source, reply_bytes
        self._path = path.absolute()
        self._required = require
        self._was_there = False
        self._indexed: tuple[int, int] | None = None
        self._file = ReadOnlyFile(self._path, self._understood, connections=connections, require=self._require)

    async def ping(self) -> None:
        await self._file.read(lambda connection, _: connection.execute("SELECT 1 FROM runs LIMIT 1").fetchone())

    async def close(self) -> None:
        await self._file.close()

    def _require(self) -> None:
        there = os.path.lexists(self._path)
        if not there and self._was_there:
            self._required(True)  # an unfinished world has its own sentence
            raise Unreachable(
                "No connection to the event log: its file was removed while this server ran. Restore it, or write it "
                "anew",
                source=SOURCE,
            )
        self._required(there)
        if not there:
            raise Unreachable("No connection to the event log: its file is missing.", source=SOURCE)
        self._was_there = True

    def _understood(self, connection: sqlite3.Connection) -> Layout:
        """Which schema the file has."""
        if connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
            if connection.execute("PRAGMA user_version").fetchone()[0] > VERSION:
                raise QueryFailed("The event log was written by a newer program; upgrade this one.", source=SOURCE)
            return layout.own(connection)
        if original.is_original(connection):
            self._index_once()
            return original.layout(connection)
        raise QueryFailed(
            "The file is no event log: it has neither quantdeck's schema nor the tables Events and BacktestRuns.",
            source=SOURCE,
        )

    def _index_once(self) -> None:
        """Give another's file the indexes it lacks, where it lets us; once for each file, unless it was locked."""
        with contextlib.suppress(OSError, sqlite3.Error):
            found = self._path.stat()
            if self._indexed == (found.st_dev, found.st_ino) or not os.access(self._path, os.W_OK):
                return
            writer = sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
            with contextlib.closing(writer):
                original.add_indexes(writer)
            self._indexed = found.st_dev, found.st_ino

    # Questions.

    async def runs(self, page: Slice, *, as_of: Now) -> tuple[list[Run], int]:
        now = micros(as_of)

        def query(connection: sqlite3.Connection, here: Layout) -> tuple[list[Run], int]:
            (total,) = connection.execute(_COUNT, (now,)).fetchone()
            rows = connection.execute(_PAGE, (now, page.limit, page.offset)).fetchall()
            return [_run(connection, here, row, now) for row in rows], total

        return await self._file.read(query)

    async def run(self, run_id: str, *, as_of: Now) -> Run | None:
        now = micros(as_of)

        def query(connection: sqlite3.Connection, here: Layout) -> Run | None:
            row = connection.execute(_ONE, (now, here.id_stored(run_id))).fetchone()
            return None if row is None else _run(connection, here, row, now)

        return await self._file.read(query)

    async def of_type(
        self,
        run_id: str,
        kind: EventType,
        span: Span,
        page: Slice,
        *,
        severity: Severity | None = None,
        categories: Sequence[Category] = (),
        as_of: Now,
    ) -> Found | None:
        return await self._within(run_id, as_of, of_type, kind, span, page, severity, categories)

    async def of_entity(
        self, run_id: str, entity: Entity, value: str, kinds: Sequence[EventType], page: Slice, *, as_of: Now
    ) -> Found | None:
        return await self._within(run_id, as_of, of_entity, entity, value, kinds, page)

    async def invalid(
        self, run_id: str, severity: Literal["Error", "Warning"] | None, page: Slice, *, as_of: Now
    ) -> Found | None:
        return await self._within(run_id, as_of, with_errors, severity, page)

    async def written(self, run_id: str, after: int, limit: int, *, as_of: Now) -> list[Event]:
        return await self._within(run_id, as_of, in_order_of_writing, after, limit) or []

    async def totals(
        self, run_id: str, kind: EventType, path: str, span: Span, *, deviation: bool = True, as_of: Now
    ) -> Totals | None:
        return await self._within(run_id, as_of, totals, kind, path, span, deviation)

    async def state(
        self,
        run_id: str,
        at: int,
        *,
        symbol: str | None = None,
        indicators: bool = True,
        orders: bool = True,
        as_of: Now,
    ) -> State | None:
        return await self._within(run_id, as_of, state, at, symbol, indicators, orders)

    async def chain(self, run_id: str, root: str, pattern: Sequence[str], depth: int, *, as_of: Now) -> Chain | None:
        return await self._within(run_id, as_of, chain, root, pattern, depth)

    async def chains(
        self, run_id: str, pattern: Sequence[str], depth: int, page: Slice, *, incomplete: bool = False, as_of: Now
    ) -> tuple[list[Chain], int] | None:
        return await self._within(run_id, as_of, chains, pattern, depth, page, incomplete)

    async def _within(self, run_id: str, as_of: Now, ask: Callable[..., T], *arguments: Any) -> T | None:
        """Ask about a run that is known as of the instant, by its key in the file."""
        now = micros(as_of)

        def query(connection: sqlite3.Connection, here: Layout) -> T | None:
            row = connection.execute(_ONE, (now, here.id_stored(run_id))).fetchone()
            return None if row is None else ask(connection, here, row[0], *arguments)

        return await self._file.read(query)


def _run(connection: sqlite3.Connection, here: Layout, row: tuple[Any, ...], now: int) -> Run:
    key, run_id, strategy, parameters, config_hash, started, ended, created, completed, failed = row
    (events,) = connection.execute(_COUNTED if here.counted else _EVENTS, (key,)).fetchone()
    status: Literal["open", "complete", "failed"] | None = None
    if here.counted:
        # As of an instant before its end a run was still being written.
        status = "open" if completed is None or completed > now else "failed" if failed else "complete"
    return Run(
        here.id_told(run_id),
        strategy,
        None if parameters is None else orjson.loads(parameters),
        config_hash,
        started,
        ended,
        created,
        status,
        events,
    )
