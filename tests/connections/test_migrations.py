"""Migrations: applied once, by however many, in order, whole or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quantdeck.connections.database import Database
from quantdeck.core.errors import QueryFailed
from quantdeck.migrations import migrate
from tests.connections.conftest import Place, elsewhere

APPLIED = "SELECT grp, number, name FROM schema_migrations ORDER BY grp, number"


@pytest.fixture
def group(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    (folder / "0001_marks.sql").write_text(
        "-- a comment; with a semicolon;\n"
        "CREATE TABLE marks (id {identity}, text {text} NOT NULL, facts {json} DEFAULT '{}');\n\n"
        "INSERT INTO marks (text) VALUES ('first; of all');  \n"
        "INSERT INTO marks (text)\nVALUES ('12:00');"
    )
    (folder / "README.md").write_text("no migration")
    return folder


@pytest.fixture
async def database(empty_place):
    opened = empty_place.open()
    yield opened
    await opened.close()


async def marks(database: Database) -> list[str]:
    return [row["text"] for row in await database.rows("SELECT text FROM marks ORDER BY id")]


async def test_pending_files_are_applied_once_and_in_order(database, group):
    (group / "0003_third.sql").write_text("UPDATE marks SET text = text || '!';")
    (group / "0002_second.sql").write_text("DELETE FROM marks WHERE text = '12:00';")
    applied = await migrate(database, [group])
    assert applied[-3:] == ["marks/0001_marks", "marks/0002_second", "marks/0003_third"]
    assert await migrate(database, [group]) == []
    assert await marks(database) == ["first; of all!"]


async def test_a_new_file_is_applied_to_what_is_there(database, group):
    await migrate(database, [group])
    (group / "0002_more.sql").write_text("INSERT INTO marks (text) VALUES ('more');")
    assert await migrate(database, [group]) == ["marks/0002_more"]
    assert await marks(database) == ["first; of all", "12:00", "more"]


async def test_the_journal_has_its_table_without_being_asked(database):
    await migrate(database, [])
    assert await database.rows(APPLIED) == [{"grp": "journal", "number": 1, "name": "idempotency_keys"}]
    assert await database.rows("SELECT * FROM idempotency_keys") == []


async def test_a_group_that_fails_leaves_nothing_of_it_and_can_be_repeated(database, group):
    (group / "0002_broken.sql").write_text("CREATE TABLE good (id {int});\nCREATE TABLE;")
    with pytest.raises(QueryFailed):
        await migrate(database, [group])
    with pytest.raises(QueryFailed, match="quantdeck migrate"):
        await marks(database)
    (group / "0002_broken.sql").write_text("CREATE TABLE good (id {int});")
    assert await migrate(database, [group]) == ["marks/0001_marks", "marks/0002_broken"]


async def test_a_database_of_a_newer_program_is_refused(database, group):
    (group / "0002_newer.sql").write_text("DELETE FROM marks;")
    await migrate(database, [group])
    (group / "0002_newer.sql").unlink()
    with pytest.raises(QueryFailed, match=r"newer program \(group marks, number 2\)"):
        await migrate(database, [group])


async def test_types_are_those_of_the_engine_and_text_is_in_byte_order(database, group):
    await migrate(database, [group])
    if database.source == "postgresql":
        (column,) = await database.rows(
            "SELECT collation_name FROM information_schema.columns WHERE table_name = 'marks' AND column_name = 'text'"
        )
        assert column == {"collation_name": "C"}
    assert (await database.row("SELECT facts FROM marks LIMIT 1")) == {"facts": {}}


async def test_an_unknown_type_is_a_mistake_of_ours(database, group):
    (group / "0002_odd.sql").write_text("CREATE TABLE odd (id {strange});")
    with pytest.raises(KeyError):
        await migrate(database, [group])


async def _migrate(place: Place, group: Path) -> None:
    database = place.open()
    await migrate(database, [group])
    await database.ping()
    await database.close()


async def test_eight_processes_at_once_apply_everything_once(empty_place, database, group):
    ended = await asyncio.to_thread(elsewhere, _migrate, empty_place, group, processes=8)
    assert ended == [0] * 8
    assert await marks(database) == ["first; of all", "12:00"]
    assert len(await database.rows(APPLIED)) == 2


async def test_eight_openings_at_once_in_one_process_apply_everything_once(empty_place, group):
    place = Place(empty_place.engine, empty_place.address, (group,))
    opened = [place.open() for _ in range(8)]
    await asyncio.gather(*(migrate(database, [group]) for database in opened))
    assert await marks(opened[0]) == ["first; of all", "12:00"]
    await asyncio.gather(*(database.close() for database in opened))
