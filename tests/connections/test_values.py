"""What goes into a database, and that it comes out the same on every engine."""

from __future__ import annotations

import contextlib
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from quantdeck.connections.database import moment
from quantdeck.core.errors import QueryFailed
from tests.connections.conftest import ADD, names

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
UID = "7f1f0f4e-3f0e-4f0a-9d0a-0a1b2c3d4e5f"

many_times = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(-1e9, 1e9).map(lambda x: x + 0.5)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner)
    ),
    max_leaves=8,
)


async def test_every_type_comes_back_as_it_went_in(database):
    thing = {
        "name": "gold",
        "uid": UID,
        "size": 2**62,
        "weight": 31.1034768,
        "price": 0.1,
        "live": True,
        "born": NOON,
        "facts": {"tags": ["a", None, 1.5], "deep": {"ß": "🙂"}},
        "raw": b"\0\xff",
    }
    (stored,) = await database.returning(
        """
        INSERT INTO things (name, uid, size, weight, price, live, born, facts, raw)
        VALUES (:name, :uid, :size, :weight, :price, :live, :born, :facts, :raw)
        RETURNING name, uid, size, weight, price, live, born, facts, raw
        """,
        **thing,
    )
    read = await database.row("SELECT name, uid, size, weight, price, live, born, facts, raw FROM things")
    assert stored == read == thing
    assert [type(value) for value in read.values()] == [type(value) for value in thing.values()]
    assert read["born"].utcoffset() == timedelta(0)


async def test_null_comes_back_as_none_in_every_column(database):
    await database.execute(ADD, name="nothing")
    row = await database.row("SELECT uid, size, weight, price, live, born, facts, raw FROM things")
    assert set(row.values()) == {None}


async def test_a_type_in_an_alias_gives_an_expression_its_type(database):
    await database.execute("INSERT INTO things (name, born, live) VALUES ('a', :born, :live)", born=NOON, live=False)
    row = await database.row(
        """
        SELECT max(born) AS "latest [TIMESTAMP]", NOT live AS "dead [BOOLEAN]", max(born) AS plain
        FROM things GROUP BY live
        """
    )
    assert (row["latest"], row["dead"], moment(row["plain"])) == (NOON, True, NOON)
    assert row["dead"] is True


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, None),
        (NOON, NOON),
        ("2026-01-15T12:00:00.000000Z", NOON),
        ("2026-01-15 12:00:00", NOON),
        (NOON.astimezone(timezone(timedelta(hours=9))), NOON),
    ],
)
def test_a_moment_is_aware_utc_whatever_it_was_read_as(value, expected):
    read = moment(value)
    assert read == expected
    assert getattr(read, "tzinfo", UTC) is UTC


async def test_types_hold_through_subqueries_and_unions(database):
    await database.execute("INSERT INTO things (name, born) VALUES ('a', :born)", born=NOON)
    rows = await database.rows(
        """
        WITH ranked AS (SELECT born, row_number() OVER (ORDER BY born) AS place FROM things)
        SELECT born FROM (SELECT * FROM ranked WHERE place = 1) AS best
        UNION ALL SELECT born FROM things
        """
    )
    assert rows == [{"born": NOON}, {"born": NOON}]


@many_times
@given(
    st.lists(
        st.datetimes(
            datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone
            datetime(9999, 12, 30),  # noqa: DTZ001
            timezones=st.sampled_from([UTC, timezone(timedelta(hours=-11)), timezone(timedelta(hours=5, minutes=45))]),
        ),
        min_size=2,
        max_size=6,
    )
)
@example([NOON + timedelta(microseconds=1), NOON, NOON + timedelta(milliseconds=500)])
async def test_timestamps_sort_and_compare_by_time(database, instants):
    await database.execute("DELETE FROM things")
    await database.execute_many(
        "INSERT INTO things (name, born) VALUES (:name, :born)",
        [{"name": str(i), "born": instant} for i, instant in enumerate(instants)],
    )
    rows = await database.rows("SELECT born FROM things ORDER BY born")
    until = await database.rows("SELECT born FROM things WHERE born <= :at ORDER BY born", at=instants[0])
    assert [row["born"] for row in rows] == sorted(instants)
    assert [row["born"] for row in until] == [i for i in sorted(instants) if i <= instants[0]]


@pytest.mark.parametrize(
    "spelt",
    [
        "2026-06-01T10:30:00-05:00",
        "2026-06-01 18:00:00",
        "2026-06-01T18:00:00Z",
        "2026-06-01T18:00:00.5Z",
        "2026-06-01T18:00:00.000000+00:00",
        "20260601T180000Z",
        "2026-06-01T24:00:00.000000Z",
    ],
)
async def test_a_time_that_was_spelt_by_hand_is_compared_as_a_time_or_not_taken(database, spelt):
    noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    with contextlib.suppress(QueryFailed):
        await database.execute(f"INSERT INTO things (name, born) VALUES ('a', '{spelt}')")
    assert await database.rows("SELECT name FROM things WHERE born <= :noon", noon=noon) == []


@pytest.mark.parametrize(
    "column, literal",
    [
        ("born", "'2026-02-31T12:00:00.000000Z'"),
        ("born", "'0000-01-01T12:00:00.000000Z'"),
        ("born", "'yesterday, more or less'"),
        ("facts", "'{broken'"),
        ("live", "'perhaps'"),
        ("size", "'many'"),
        ("uid", "'nobody'"),
        ("weight", "'heavy'"),
        ("price", "'dear'"),
    ],
)
async def test_what_is_not_of_a_columns_type_is_not_taken(database, column, literal):
    with pytest.raises(QueryFailed):
        await database.execute(f"INSERT INTO things (name, {column}) VALUES ('a', {literal})")
    assert await names(database) == []


@pytest.mark.parametrize("literal", ["'{}'", "'[1]'", "'7'", "'null'", "NULL"])
async def test_a_column_for_objects_takes_nothing_else(database, literal):
    with contextlib.suppress(QueryFailed):
        await database.execute(f"INSERT INTO deeds (what, how) VALUES ('a', {literal})")
    taken = await database.rows("SELECT how FROM deeds")
    assert taken == {"'{}'": [{"how": {}}], "NULL": [{"how": None}]}.get(literal, [])


@many_times
@given(json_values)
async def test_json_comes_back_equal(database, value):
    await database.execute("DELETE FROM things")
    await database.execute("INSERT INTO things (name, facts) VALUES ('a', :facts)", facts={"value": value})
    assert await database.row("SELECT facts FROM things") == {"facts": {"value": value}}


@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE things; --",
        "\"double\" and 'single'",
        ":name $1 ?1 % {uuid}",
        "\\",
        "line\nline\r\n\ttab",
        "🙂\u200d🙂 \u202ertl",
        "",
        pytest.param("x" * 1_000_000, id="a megabyte"),
    ],
)
async def test_hostile_text_comes_back_unchanged(database, text):
    await database.execute("INSERT INTO deeds (what) VALUES (:text)", text=text)
    found = await database.row("SELECT what FROM deeds WHERE what = :text", text=text)
    assert found == {"what": text}


@many_times
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
async def test_any_text_comes_back_unchanged(database, text):
    await database.execute("DELETE FROM things")
    await database.execute(ADD, name=text + "!")
    assert await names(database) == [text + "!"]


INTO = {
    "name": "INSERT INTO things (name) VALUES (:value)",
    "facts": "INSERT INTO things (name, facts) VALUES ('a', :value)",
}


@pytest.mark.parametrize("value", ["a\0b", ["a\0b"], {"a": {"\0": 1}}, "\ud800", ["\ud800"], [2**70]])
async def test_what_one_engine_cannot_store_both_refuse(database, value):
    column = "name" if isinstance(value, str) else "facts"
    with pytest.raises(QueryFailed) as refused:
        await database.execute(INTO[column], value=value)
    assert refused.value.source == database.source


async def test_the_letters_of_an_escaped_nul_are_no_nul(database):
    facts = {"a": r"\u0000"}
    await database.execute("INSERT INTO things (name, facts) VALUES ('a', :facts)", facts=facts)
    assert await database.row("SELECT facts FROM things") == {"facts": facts}


async def test_an_integer_beyond_64_bits_is_refused(database):
    with pytest.raises(QueryFailed):
        await database.execute("INSERT INTO things (name, size) VALUES ('a', :size)", size=2**63)


async def test_not_a_number_is_stored_as_null(database):
    await database.execute(
        "INSERT INTO things (name, weight, price) VALUES ('a', :weight, :price)",
        weight=math.nan,
        price=math.nan,
    )
    assert await database.row("SELECT weight, price FROM things") == {"weight": None, "price": None}


async def test_a_naive_datetime_is_a_programming_error(database):
    naive = datetime(2026, 1, 15)  # noqa: DTZ001 - the point
    with pytest.raises(ValueError, match="time zone"):
        await database.rows("SELECT name FROM things WHERE born < :at", at=naive)
    with pytest.raises(ValueError, match="time zone"):
        await database.execute_many("DELETE FROM things WHERE born < :at", [{"at": naive}])
