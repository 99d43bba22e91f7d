"""Snapshots, transactions, cancellation and the end, on every engine."""

from __future__ import annotations

import asyncio

import pytest

from quantdeck.core.errors import QueryFailed, Unreachable
from tests.connections.conftest import ADD, ENDLESS, Place, elsewhere, names


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
