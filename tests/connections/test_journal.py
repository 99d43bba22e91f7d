"""The journal of a database: claim, effect and answer are one transaction."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from quantdeck.connections.database import Database
from quantdeck.core.once import Conflict, Recorded, Slot
from tests.connections.conftest import Place, elsewhere

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
