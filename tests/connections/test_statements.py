"""One SQL text for every engine: parameters, conditions, orders, and what is said of what fails."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from quantdeck.core.errors import QueryFailed
from tests.connections.conftest import ADD, NAMES, names

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
UID = "7f1f0f4e-3f0e-4f0a-9d0a-0a1b2c3d4e5f"


@pytest.mark.parametrize("values", [{}, {"name": "a", "other": "b"}, {"name": object()}])
async def test_parameters_must_be_exactly_those_of_the_statement(database, values):
    with pytest.raises(TypeError):
        await database.execute(ADD, **values)


async def test_only_a_parameter_is_taken_for_one(database):
    row = await database.row(
        """
        SELECT ':no' AS text, 'it''s :no' AS quoted, -- :no
               CAST(:yes AS TEXT) /* :no */ AS "a :no", '12:30:00' AS time, CAST(:yes AS TEXT) AS again
        """,
        yes="yes",
    )
    assert list(row.values()) == [":no", "it's :no", "yes", "12:30:00", "yes"]


@pytest.mark.parametrize("column, value", [("name", "a"), ("born", NOON), ("size", 1), ("live", True), ("uid", UID)])
async def test_an_optional_condition_takes_null_for_any(database, column, value):
    await database.execute(
        "INSERT INTO things (name, uid, size, live, born) VALUES ('a', :uid, 1, :live, :born)",
        uid=UID,
        live=True,
        born=NOON,
    )
    await database.execute(ADD, name="b")
    optional = "SELECT name FROM things WHERE (:value IS NULL OR {} = :value) ORDER BY name"
    required = "SELECT name FROM things WHERE :value IS NOT NULL AND {} = :value"
    optional, required = optional.format(column), required.format(column)
    assert await database.rows(optional, value=value) == [{"name": "a"}]
    assert await database.rows(optional, value=None) == [{"name": "a"}, {"name": "b"}]
    assert await database.rows(required, value=value) == [{"name": "a"}]
    assert await database.rows(required, value=None) == []


async def test_a_cast_tells_the_type_of_an_optional_condition_as_well(database):
    await database.execute(ADD, name="a")
    sql = "SELECT name FROM things WHERE (CAST(:name AS TEXT) IS NULL OR name = :name)"
    assert await database.rows(sql, name=None) == [{"name": "a"}]
    assert await database.rows(sql, name="b") == []


async def test_text_sorts_by_its_bytes(database):
    await database.execute_many(ADD, [{"name": name} for name in ("b", "a", "É", "B", "_", "e")])
    assert await names(database) == ["B", "_", "a", "b", "e", "É"]


async def test_no_row_is_none_and_no_rows_are_an_empty_list(database):
    assert await database.row(NAMES) is None
    assert await database.rows(NAMES) == []


async def test_a_write_says_how_many_rows_it_touched(database):
    ignore = "INSERT INTO things (name) VALUES (:name) ON CONFLICT DO NOTHING"
    assert await database.execute(ignore, name="a") == 1
    assert await database.execute(ignore, name="a") == 0
    assert await database.execute(ignore, name="b") == 1
    assert await database.execute("UPDATE things SET size = 1") == 2
    assert (
        await database.execute(
            "WITH old AS (SELECT max(name) AS name FROM things)"
            " UPDATE things SET size = 2 WHERE name IN (SELECT name FROM old)"
        )
        == 1
    )
    assert await database.execute("DELETE FROM things WHERE name = 'c'") == 0


@pytest.mark.parametrize(
    "sql, rule",
    [
        ("INSERT INTO things (name) VALUES ('taken')", "unique"),
        ("INSERT INTO things (name) VALUES (NULL)", "not_null"),
        ("INSERT INTO things (name) VALUES ('forbidden')", "check"),
        ("INSERT INTO deeds (what, thing) VALUES ('a', 4711)", "foreign_key"),
    ],
)
async def test_a_broken_rule_is_named(database, sql, rule):
    await database.execute(ADD, name="taken")
    with pytest.raises(QueryFailed) as failed:
        await database.execute(sql)
    assert failed.value.details == {"rule": rule}


@pytest.mark.parametrize("sql", ["SELECT * FROM nowhere", "SELECT colour FROM things"])
async def test_a_missing_table_or_column_asks_for_a_migration(database, place, sql):
    with pytest.raises(QueryFailed, match="quantdeck migrate") as failed:
        await database.rows(sql)
    assert place.address not in failed.value.message


async def test_a_syntax_error_says_nothing_of_the_statement(database):
    with pytest.raises(QueryFailed) as failed:
        await database.rows("FETCH secret, please")
    assert failed.value.message == "The database refused the query."
    assert failed.value.__cause__ is not None


async def test_of_fifty_concurrent_inserts_of_one_name_one_wins(database):
    claim = "INSERT INTO things (name) VALUES ('mine') ON CONFLICT DO NOTHING RETURNING id"
    won = await asyncio.gather(*(database.returning(claim) for _ in range(50)))
    assert sum(map(len, won)) == 1


async def test_many_rows_are_written_together_or_not_at_all(database):
    with pytest.raises(QueryFailed):
        await database.execute_many(ADD, [{"name": "a"}, {"name": "b"}, {"name": "a"}])
    assert await names(database) == []
    await database.execute_many(ADD, [])
    await database.execute_many(ADD, [{"name": "a"}, {"name": "b"}])
    assert await names(database) == ["a", "b"]
