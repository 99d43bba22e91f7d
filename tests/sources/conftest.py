"""A desk database, empty but for its tables, on each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quantdeck.connections.database import Database
from quantdeck.connections.sqlite import SQLite
from quantdeck.migrations import migrate
from tests.support import postgresql


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    database = await _database(request.param, tmp_path)
    await migrate(database, ("desk",))
    try:
        yield database
    finally:
        await database.close()


async def _database(engine: str, folder: Path) -> Database:
    if engine == "sqlite":
        return SQLite(folder / "desk.db", groups=("desk",))
    from quantdeck.connections.postgresql import PostgreSQL

    return PostgreSQL(await postgresql.available().new_database())
