"""The SQL behind a call: what a tool asks of its database, asked again by the bare driver in the same run."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import asyncpg

from quantdeck.app import open_app
from quantdeck.connections.database import Database
from quantdeck.connections.postgresql import PostgreSQL
from quantdeck.connections.postgresql import _bound as bound_for_postgresql
from quantdeck.connections.postgresql import _compiled as compiled_for_postgresql
from quantdeck.connections.postgresql import _set_types as set_types
from quantdeck.connections.sqlite import SQLite
from quantdeck.connections.sqlite import _compiled as compiled_for_sqlite
from quantdeck.connections.sqlite_values import bound as bound_for_sqlite
from quantdeck.servers import NAMES, load
from quantdeck.settings import Settings

RUNS = 60

Asked = list[tuple[str, list[Any]]]


@dataclass
class Recorded:
    """The statements of one call, in the driver's words, by the database that was asked."""

    database: Database | None = None
    statements: Asked = field(default_factory=list)
    together: bool = False  # in one transaction: the tool itself opened one
    in_process_us: float = 0.0  # the median of the whole call without a wire


async def recorded(settings: Settings, tool: str, arguments: Mapping[str, Any]) -> Recorded:
    """Run a tool in this process and keep what it asked."""
    found = Recorded()
    servers = tuple(server for server in map(load, NAMES) if any(one.name == tool for one in server.tools))
    async with open_app(settings, servers) as app:
        contract = app.tool(tool)
        assert contract is not None
        await app.call(contract, arguments)  # opens, migrates
        with _listening(found):
            answer = await app.call(contract, arguments)
        assert not getattr(answer, "is_error", True), answer
        found.in_process_us = await _median(lambda: app.call(contract, arguments))
    return found


@contextmanager
def _listening(found: Recorded) -> Iterator[None]:
    originals = {kind: kind._fetch for kind in (SQLite, PostgreSQL)}

    def heard(kind: Any, compiled: Any, bound: Any) -> Any:
        async def fetch(self: Database, connection: Any, sql: str, values: Mapping[str, Any]) -> Any:
            statement = compiled(sql)
            found.database = self
            found.together |= self._block() is not None
            found.statements.append((statement.text, statement.bind(values, bound)))
            return await originals[kind](self, connection, sql, values)

        return fetch

    SQLite._fetch = heard(SQLite, compiled_for_sqlite, bound_for_sqlite)  # type: ignore[method-assign]
    PostgreSQL._fetch = heard(PostgreSQL, compiled_for_postgresql, bound_for_postgresql)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for kind, original in originals.items():
            kind._fetch = original  # type: ignore[method-assign]


async def timed(asked: Recorded, address: str) -> float:
    """The median in microseconds of asking all of it by the bare driver, in a transaction where the tool did so."""
    if isinstance(asked.database, SQLite):
        connection = sqlite3.connect(address, detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES)
        connection.isolation_level = None
        try:
            return await _median(lambda: _by_sqlite(connection, asked))
        finally:
            connection.close()
    server = await asyncpg.connect(address)
    try:
        await set_types(server)
        return await _median(lambda: _by_asyncpg(server, asked))
    finally:
        await server.close()


async def _median(ask: Callable[[], Awaitable[object]]) -> float:
    took = []
    for _ in range(RUNS):
        start = perf_counter()
        await ask()
        took.append(perf_counter() - start)
    return median(took) * 1e6


async def _by_sqlite(connection: sqlite3.Connection, asked: Recorded) -> None:
    if asked.together:
        connection.execute("BEGIN")
    for text, values in asked.statements:
        connection.execute(text, values).fetchall()
    if asked.together:
        connection.execute("COMMIT")


async def _by_asyncpg(connection: Any, asked: Recorded) -> None:
    if asked.together:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    for text, values in asked.statements:
        await connection.fetch(text, *values)
    if asked.together:
        await connection.execute("COMMIT")
