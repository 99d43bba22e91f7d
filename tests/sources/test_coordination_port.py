"""What every adapter of the port `coordination` does, over every database it may stand on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from quantdeck.connections.database import Database
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.errors import Busy, ErrorCode, NotInPast, QueryFailed
from quantdeck.core.once import Conflict, Recorded, Slot, Unknown
from quantdeck.migrations import migrate
from quantdeck.sources.coordination import Coordination
from quantdeck.sources.coordination.embedded import KEEP, Embedded, LeaseJournal, SlidingWindows
from tests.support.clock import Ticks
from tests.support.postgresql import available
from tests.support.runtime import Gate, turns

SLOT = Slot("alice:save", "key", "fingerprint")
REFUSED = ErrorCode("REFUSED", "No", 400)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
async def databases(request, tmp_path) -> AsyncIterator[tuple[Database, Database]]:
    """The same database twice: as two processes of a home have it."""
    pair: tuple[Database, ...]
    if request.param == "sqlite":
        pair = tuple(SQLite(tmp_path / "state.db", groups=("journal", "state")) for _ in range(2))
    else:
        from quantdeck.connections.postgresql import PostgreSQL

        dsn = await available().new_database()
        pair = tuple(PostgreSQL(dsn) for _ in range(2))
        await migrate(pair[0], ("state",))
    async with AsyncExitStack() as stack:
        for database in pair:
            stack.push_async_callback(database.close)
        yield pair[0], pair[1]


@pytest.fixture
def journal(databases) -> LeaseJournal:
    return LeaseJournal(lambda: databases[0])


@pytest.fixture
def other(databases) -> LeaseJournal:
    return LeaseJournal(lambda: databases[1])


class Deed:
    """An effect that counts, waits at a gate and fails when told to."""

    def __init__(self, answer: bytes = b'{"n":1}') -> None:
        self.answer = answer
        self.done = 0
        self.failure: BaseException | None = None
        self.gate = Gate()

    async def __call__(self) -> bytes:
        await self.gate.passed()
        self.done += 1
        if self.failure is not None:
            raise self.failure
        return self.answer


async def test_an_answer_is_recorded_and_replayed_to_the_byte(journal, other):
    deed = Deed('{"ü":[1.50,null]}'.encode())
    assert await journal.run(SLOT, deed) == Recorded(deed.answer, replayed=False)
    assert await other.run(SLOT, deed) == Recorded(deed.answer, replayed=True)
    assert deed.done == 1


async def test_another_fingerprint_is_a_conflict(journal, other):
    await journal.run(SLOT, Deed())
    with pytest.raises(Conflict):
        await other.run(Slot(SLOT.scope, SLOT.key, "another"), Deed())


async def test_scope_and_key_make_the_slot(journal):
    for slot in (SLOT, Slot("bob:save", "key", "fingerprint"), Slot("alice:save", "other", "fingerprint")):
        assert not (await journal.run(slot, Deed())).replayed


async def test_any_number_at_once_are_one_effect(journal, other):
    deed = Deed()
    deed.gate.shut()
    runs = [asyncio.create_task(j.run(SLOT, deed)) for j in (journal, other) for _ in range(8)]
    await deed.gate.arrived.wait()
    deed.gate.open()
    recorded = await asyncio.gather(*runs)
    assert deed.done == 1
    assert sorted(record.replayed for record in recorded) == [False] + [True] * 15


@pytest.mark.parametrize(
    "failure", [REFUSED("no"), Busy("busy", source="x"), NotInPast("no", source="x")], ids=lambda e: type(e).__name__
)
async def test_an_effect_that_says_nothing_was_done_leaves_the_slot_free(journal, other, failure):
    deed = Deed()
    deed.failure = failure
    with pytest.raises(type(failure)):
        await journal.run(SLOT, deed)
    assert not (await other.run(Slot(SLOT.scope, SLOT.key, "another"), Deed())).replayed


@pytest.mark.parametrize("failure", [QueryFailed("no", source="x"), OSError("reset"), asyncio.CancelledError()])
async def test_an_effect_that_broke_off_is_unknown_to_everyone_after(journal, other, failure):
    deed = Deed()
    deed.failure = failure
    with pytest.raises(type(failure)):
        await journal.run(SLOT, deed)
    for again in (journal, other):
        with pytest.raises(Unknown):
            await again.run(SLOT, deed)
    assert deed.done == 1


async def test_a_lease_that_ran_out_is_unknown_and_not_free(databases, other):
    deed = Deed()
    deed.gate.shut()
    slow = asyncio.create_task(LeaseJournal(lambda: databases[0], lease_s=0).run(SLOT, deed))
    await deed.gate.arrived.wait()
    with pytest.raises(Unknown):
        await other.run(SLOT, Deed())
    deed.gate.open()
    await slow
    assert (await other.run(SLOT, Deed())).replayed, "its holder lived, and now it is known"


async def test_a_slot_that_changes_nothing_is_never_unknown(databases, other):
    repeatable = Slot(SLOT.scope, SLOT.key, SLOT.fingerprint, repeatable=True)
    broken = Deed()
    broken.failure = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await other.run(repeatable, broken)
    dead = Deed()
    dead.gate.shut()
    lost = asyncio.create_task(LeaseJournal(lambda: databases[0], lease_s=0).run(repeatable, dead))
    await dead.gate.arrived.wait()
    assert not (await other.run(repeatable, Deed())).replayed
    lost.cancel()
    await asyncio.wait({lost})


async def test_who_waits_for_another_can_give_up(journal, other):
    deed = Deed()
    deed.gate.shut()
    first = asyncio.create_task(journal.run(SLOT, deed))
    await deed.gate.arrived.wait()
    second = asyncio.create_task(other.run(SLOT, Deed()))
    await turns()
    second.cancel()
    await asyncio.wait({second})
    assert second.cancelled()
    deed.gate.open()
    assert not (await first).replayed


async def _age(database: Database, days: int) -> None:
    row = await database.row("SELECT created_at FROM idempotency_claims LIMIT 1")
    assert row is not None
    await database.execute("UPDATE idempotency_claims SET created_at = :at", at=row["created_at"] - days * KEEP)


async def test_a_key_is_kept_for_a_day_and_then_free(databases, journal):
    await journal.run(SLOT, Deed())
    assert KEEP.total_seconds() == 86_400
    await _age(databases[0], 1)
    assert not (await journal.run(Slot(SLOT.scope, SLOT.key, "another"), Deed())).replayed


async def test_old_keys_are_swept_away_by_new_ones(databases, journal):
    for number in range(5):
        await journal.run(Slot("alice:save", f"k{number}", "f"), Deed())
    await _age(databases[0], 2)
    await journal.run(Slot("alice:save", "new", "f"), Deed())
    rows = await databases[0].rows("SELECT key FROM idempotency_claims")
    assert [row["key"] for row in rows] == ["new"]


async def test_the_embedded_adapter_is_the_port(databases):
    adapter: Coordination = Embedded(lambda: databases[0], SlidingWindows(clock=Ticks()))
    assert not adapter.shared
    await adapter.put("key", b"value", 60)
    assert await adapter.get("key") is None, "the in-process cache has what there is"
    grants = [await adapter.take("alice", "save", 2) for _ in range(3)]
    assert [(grant.granted, grant.remaining) for grant in grants] == [(True, 1), (True, 0), (False, 0)]


async def test_nothing_is_opened_before_it_is_needed():
    def opened() -> Database:
        raise AssertionError("opened")

    adapter = Embedded(opened)
    assert (await adapter.take("alice", "save", 1)).granted
    effect: Callable[[], Awaitable[bytes]] = Deed()
    with pytest.raises(AssertionError, match="opened"):
        await adapter.journal.run(SLOT, effect)
