"""Where a test's database lives, on each engine, and how to open it: here or in another process."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quantdeck.connections.database import Database
from quantdeck.connections.sqlite import SQLite
from quantdeck.migrations import migrate
from tests.support.postgresql import available

THINGS = """
-- Something with a column of every type.
CREATE TABLE things (
    id {identity},
    name {text} UNIQUE NOT NULL CHECK (name <> 'forbidden'),
    uid {uuid},
    size {int},
    weight {float},
    price {numeric},
    live {bool},
    born {timestamp},
    facts {json},
    raw {bytes}
);

CREATE TABLE deeds (what {text} NOT NULL, how {object}, thing {int} REFERENCES things (id));
"""

ADD = "INSERT INTO things (name) VALUES (:name)"
NAMES = "SELECT name FROM things ORDER BY name"
ENDLESS = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000)
    SELECT count(*) AS many FROM n
"""


async def names(database: Database) -> list[str]:
    """Of all the things that there are."""
    return [row["name"] for row in await database.rows(NAMES)]


@dataclass(frozen=True)
class Place:
    """A database's address; it can be sent to another process."""

    engine: str
    address: str
    groups: tuple[Path, ...] = ()

    def open(self, **settings: Any) -> Database:
        if self.engine == "sqlite":
            return SQLite(Path(self.address), groups=self.groups, **settings)
        from quantdeck.connections.postgresql import PostgreSQL

        return PostgreSQL(self.address, **settings)


ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.services)]


@pytest.fixture(params=ENGINES)
async def empty_place(request, tmp_path) -> Place:
    """A database without a table."""
    if request.param == "sqlite":
        return Place("sqlite", str(tmp_path / "home" / "test.db"))
    return Place("postgresql", await available().new_database())


@pytest.fixture
async def place(empty_place: Place, tmp_path: Path) -> Place:
    """A database with the tables above."""
    group = tmp_path / "world"
    group.mkdir()
    (group / "0001_things.sql").write_text(THINGS)
    there = Place(empty_place.engine, empty_place.address, (group,))
    if there.engine == "postgresql":
        database = there.open()
        await migrate(database, there.groups)
        await database.close()
    return there


@pytest.fixture
async def database(place) -> AsyncIterator[Database]:
    opened = place.open()
    yield opened
    await opened.close()


def elsewhere(work: Callable[..., Any], *arguments: Any, processes: int = 1) -> list[int | None]:
    """Run an async function in processes of their own, all at once; how each of them ended."""
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(processes)
    started = [context.Process(target=_run, args=(together, work, arguments)) for _ in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [process.exitcode for process in started]


def _run(together: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    together.wait()
    asyncio.run(work(*arguments))
