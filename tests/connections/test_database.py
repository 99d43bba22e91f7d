"""What the seam promises, on every engine."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from quantdeck.connections.database import Database, moment
from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.core.once import Conflict, Recorded, Slot
from tests.connections.conftest import Place, elsewhere

ENDLESS = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000)
    SELECT count(*) AS many FROM n
"""
ADD = "INSERT INTO things (name) VALUES (:name)"
NAMES = "SELECT name FROM things ORDER BY name"
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


async def names(database: Database) -> list[str]:
    return [row["name"] for row in await database.rows(NAMES)]


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


async def test_a_transaction_is_seen_by_others_when_it_is_done(database, place):
    other = place.open()
    async with database.transaction():
        await database.execute(ADD, name="a")
        async with database.transaction():
            await database.execute_many(ADD, [{"name": "b"}])
        assert await names(database) == ["a", "b"]
        assert await names(other) == []
    assert await names(other) == ["a", "b"]
    await other.close()


async def test_a_transaction_that_raises_leaves_nothing(database):
    async def failing() -> None:
        async with database.transaction():
            await database.execute(ADD, name="a")
            raise LookupError

    with pytest.raises(LookupError):
        await failing()
    assert await names(database) == []
    await database.execute(ADD, name="next")


async def test_a_caught_error_does_not_let_half_a_transaction_through(database):
    async def half() -> None:
        async with database.transaction():
            await database.execute(ADD, name="a")
            with pytest.raises(QueryFailed):
                await database.execute(ADD, name="a")

    with pytest.raises(QueryFailed, match="earlier statement"):
        await half()
    assert await names(database) == []


async def test_after_a_failed_statement_the_transaction_takes_no_other(database):
    async def going_on() -> None:
        async with database.transaction():
            with pytest.raises(QueryFailed):
                await database.rows("SELECT * FROM nowhere")
            with pytest.raises(QueryFailed, match="nothing of it is stored"):
                await database.execute(ADD, name="a")

    with pytest.raises(QueryFailed, match="nothing of it is stored"):
        await going_on()
    assert await names(database) == []


async def test_a_nested_transaction_that_raises_takes_the_outer_with_it(database):
    async def inner() -> None:
        async with database.transaction():
            await database.execute(ADD, name="inner")
            raise LookupError

    async def outer() -> None:
        async with database.transaction():
            await database.execute(ADD, name="outer")
            with pytest.raises(LookupError):
                await inner()

    with pytest.raises(QueryFailed):
        await outer()
    assert await names(database) == []


async def test_tasks_started_inside_a_transaction_are_part_of_it(database):
    async def family() -> None:
        async with database.transaction():
            await asyncio.gather(*(database.execute(ADD, name=str(i)) for i in range(20)))
            await asyncio.wait_for(database.execute(ADD, name="waited for"), 10)
            assert len(await names(database)) == 21
            raise LookupError

    with pytest.raises(LookupError):
        await family()
    assert await names(database) == []


async def test_a_task_that_outlives_its_transaction_is_outside(database):
    over = asyncio.Event()

    async def later() -> None:
        await over.wait()
        await database.execute(ADD, name="later")

    async with database.transaction():
        await database.execute(ADD, name="in time")
        task = asyncio.create_task(later())
    over.set()
    await task
    assert await names(database) == ["in time", "later"]


async def test_a_snapshot_sees_one_moment_while_another_writes(database, place):
    other = place.open()
    await other.execute(ADD, name="a")
    async with database.snapshot():
        assert await names(database) == ["a"]
        await other.execute(ADD, name="b")
        async with database.snapshot():
            assert await names(database) == ["a"]
    assert await names(database) == ["a", "b"]
    await other.close()


async def test_a_snapshot_takes_no_write(database):
    async with database.snapshot():
        with pytest.raises(RuntimeError, match="snapshot"):
            await database.execute(ADD, name="a")
        with pytest.raises(RuntimeError, match="snapshot"):
            async with database.transaction():
                pass
    assert await names(database) == []


async def test_a_snapshot_inside_a_transaction_sees_what_it_wrote(database):
    async with database.transaction():
        await database.execute(ADD, name="a")
        async with database.snapshot():
            assert await names(database) == ["a"]


async def test_two_databases_can_have_a_transaction_each(database, place):
    other = place.open()
    async with other.snapshot():
        assert await names(other) == []
        async with database.transaction():
            await database.execute(ADD, name="a")
        assert await names(other) == []
    await other.close()


async def test_a_cancelled_read_stops_and_its_connection_serves_on(database):
    for _ in range(12):  # more often than there are connections
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await database.rows(ENDLESS)
    await asyncio.gather(*(database.ping() for _ in range(20)))


async def test_a_cancelled_read_ends_its_snapshot(database):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), database.snapshot():
            await database.rows(ENDLESS)
    await database.execute(ADD, name="a")
    async with database.snapshot():
        assert await names(database) == ["a"]


async def test_a_cancelled_transaction_leaves_nothing(database):
    began = asyncio.Event()

    async def work() -> None:
        async with database.transaction():
            await database.execute(ADD, name="a")
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(database) == []
    await database.execute(ADD, name="next")


@pytest.mark.parametrize("steps", range(8))
async def test_a_write_cancelled_at_any_step_is_done_or_not(database, steps):
    await database.ping()
    task = asyncio.create_task(database.execute_many(ADD, [{"name": "a"}, {"name": "b"}]))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert await names(database) in ([], ["a", "b"])
    await database.execute(ADD, name="next")


async def test_after_closing_there_is_no_connection(place):
    database = place.open()
    await database.ping()
    await database.close()
    with pytest.raises(Unreachable, match="connection"):
        await database.ping()
    await database.close()


async def test_what_was_never_used_can_be_closed(place):
    await place.open().close()


async def _write_and_read(place: Place, turns: int) -> None:
    database = place.open()
    for _ in range(turns):
        async with database.transaction():
            row = await database.row("SELECT count(*) AS many FROM deeds")
            await database.execute("INSERT INTO deeds (what) VALUES (:what)", what=str(row["many"]))  # type: ignore[index]
        await database.rows("SELECT what FROM deeds")
    await database.close()


async def test_two_processes_write_and_read_at_once(place, database):
    assert await asyncio.to_thread(elsewhere, _write_and_read, place, 100, processes=2) == [0, 0]
    assert await database.row("SELECT count(*) AS many FROM deeds") == {"many": 200}


# The journal.

SLOT = Slot("caller:tool", "key", "fingerprint")


class Effect:
    """Does one deed each time it happens."""

    def __init__(self, database: Database, answer: bytes = b'{"id": 1}') -> None:
        self.database, self.answer = database, answer

    async def __call__(self) -> bytes:
        await self.database.execute("INSERT INTO deeds (what) VALUES ('done')")
        return self.answer

    async def times(self) -> int:
        row = await self.database.row("SELECT count(*) AS many FROM deeds")
        return int(row["many"]) if row else 0


async def test_an_effect_happens_once_and_its_answer_is_replayed(database):
    effect = Effect(database)
    assert await database.journal.run(SLOT, effect) == Recorded(b'{"id": 1}', replayed=False)
    assert await database.journal.run(SLOT, effect) == Recorded(b'{"id": 1}', replayed=True)
    assert await effect.times() == 1


@pytest.mark.parametrize("other", [Slot("caller:other", "key", "f"), Slot("caller:tool", "2", "f")])
async def test_another_scope_or_key_is_another_slot(database, other):
    effect = Effect(database)
    await database.journal.run(SLOT, effect)
    assert not (await database.journal.run(other, effect)).replayed
    assert await effect.times() == 2


async def test_another_request_under_the_same_key_is_a_conflict(database):
    effect = Effect(database)
    await database.journal.run(SLOT, effect)
    with pytest.raises(Conflict):
        await database.journal.run(Slot(SLOT.scope, SLOT.key, "another"), effect)
    assert await effect.times() == 1


async def test_an_effect_that_raises_leaves_nothing_and_the_key_free(database):
    effect = Effect(database)

    async def failing() -> bytes:
        await effect()
        raise LookupError

    with pytest.raises(LookupError):
        await database.journal.run(SLOT, failing)
    assert await effect.times() == 0
    assert not (await database.journal.run(SLOT, effect)).replayed


async def test_concurrent_calls_wait_for_the_first_and_replay(place, database):
    other = place.open()
    effect = Effect(database)
    answers = await asyncio.gather(*(opened.journal.run(SLOT, Effect(opened)) for opened in (database, other) * 10))
    assert sorted(answer.replayed for answer in answers) == [False] + [True] * 19
    assert await effect.times() == 1
    await other.close()


async def test_a_second_caller_takes_over_when_the_first_fails(place, database):
    other, claimed, fail = place.open(), asyncio.Event(), asyncio.Event()

    async def failing() -> bytes:
        claimed.set()
        await fail.wait()
        raise LookupError

    first = asyncio.create_task(database.journal.run(SLOT, failing))
    await claimed.wait()
    second = asyncio.create_task(other.journal.run(SLOT, Effect(other)))
    fail.set()
    with pytest.raises(LookupError):
        await first
    assert await second == Recorded(b'{"id": 1}', replayed=False)
    await other.close()


async def test_an_answer_is_forgotten_after_its_time(place):
    database = place.open(keep_s=0)
    effect = Effect(database)
    await database.journal.run(SLOT, effect)
    renewed = Slot(SLOT.scope, SLOT.key, "another")
    assert not (await database.journal.run(renewed, effect)).replayed
    await database.close()


async def test_forgotten_answers_are_deleted_a_bounded_number_at_a_time(database):
    old = datetime.now(UTC) - timedelta(days=2)
    await database.execute_many(
        "INSERT INTO idempotency_keys (scope, key, fingerprint, created_at) VALUES ('old', :key, '', :at)",
        [{"key": str(i), "at": old} for i in range(300)],
    )
    await database.journal.run(SLOT, Effect(database))
    left = await database.row("SELECT count(*) AS many FROM idempotency_keys")
    assert left == {"many": 300 - 256 + 1}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _die_at(point: str, place: Place) -> None:
    database = place.open()
    effect = Effect(database)

    async def deadly() -> bytes:
        if point == "after the claim":
            die()
        answer = await effect()
        if point == "inside the effect":
            die()
        return answer

    await database.ping()
    if point == "before the claim":
        die()
    async with AsyncExitStack() as stack:
        if point == "before the commit":
            await stack.enter_async_context(database.transaction())
            stack.callback(die)
        await database.journal.run(SLOT, deadly)
    die()


@pytest.mark.parametrize(
    "point, replayed",
    [
        ("before the claim", False),
        ("after the claim", False),
        ("inside the effect", False),
        ("before the commit", False),
        ("after the commit", True),
    ],
)
async def test_a_process_killed_at_any_point_leaves_all_or_nothing(place, database, point, replayed):
    assert await asyncio.to_thread(elsewhere, _die_at, point, place) == [-signal.SIGKILL]
    effect = Effect(database)
    assert await database.journal.run(SLOT, effect) == Recorded(effect.answer, replayed=replayed)
    assert await effect.times() == 1
