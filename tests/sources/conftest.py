"""Databases, empty but for their tables, on each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quantdeck.connections.database import Database
from quantdeck.connections.sqlite import SQLite
from quantdeck.migrations import migrate
from tests.support import postgresql


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def desk(engine: str, tmp_path: Path) -> AsyncIterator[Database]:
    async with opened(engine, tmp_path, "desk") as database:
        yield database


@pytest.fixture
async def diary(engine: str, tmp_path: Path) -> AsyncIterator[Database]:
    """What the group `decisions` is in."""
    async with opened(engine, tmp_path, "decisions") as database:
        yield database


@asynccontextmanager
async def opened(engine: str, folder: Path, group: str) -> AsyncIterator[Database]:
    """A database with the tables of a group."""
    database = await _made(engine, folder, group)
    await migrate(database, (group,))
    try:
        yield database
    finally:
        await database.close()


async def _made(engine: str, folder: Path, group: str) -> Database:
    if engine == "sqlite":
        return SQLite(folder / f"{group}.db", groups=(group,))
    from quantdeck.connections.postgresql import PostgreSQL

    return PostgreSQL(await postgresql.available().new_database())
