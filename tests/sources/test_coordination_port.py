"""What every adapter of the port `coordination` does, over every store it may stand on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from quantdeck.connections.database import Database
from quantdeck.connections.redis import Redis
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.errors import Busy, ErrorCode, NotInPast, QueryFailed
from quantdeck.core.once import Conflict, Recorded, Slot, Unknown
from quantdeck.migrations import migrate
from quantdeck.sources.coordination import Coordination
from quantdeck.sources.coordination.embedded import Embedded, LeaseJournal, SlidingWindows
from quantdeck.sources.coordination.leases import KEEP, Leases
from quantdeck.sources.coordination.redis import RedisCoordination, RedisLeases
from tests.support import redis as real
from tests.support.clock import Ticks
from tests.support.postgresql import available
from tests.support.runtime import Gate, turns

SLOT = Slot("alice:save", "key", "fingerprint")
REFUSED = ErrorCode("REFUSED", "No", 400)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Relational:
    """One database, opened twice: as two processes have it."""

    pair: tuple[Database, Database]

    def leases(self, which: int = 0, **said: Any) -> Leases:
        return LeaseJournal(lambda: self.pair[which], **said)

    def adapter(self, which: int = 0) -> Coordination:
        return Embedded(lambda: self.pair[which])

    async def age(self, days: int) -> None:
        row = await self.pair[0].row("SELECT created_at FROM idempotency_claims LIMIT 1")
        assert row is not None
        older = row["created_at"] - days * KEEP
        await self.pair[0].execute("UPDATE idempotency_claims SET created_at = :at", at=older)

    async def pass_on(self) -> None:
        """Let the time of every name be over."""
        await self.pair[0].execute("UPDATE seen_names SET seen_until = :at", at=LONG_AGO)

    async def keys(self) -> int:
        return len(await self.pair[0].rows("SELECT key FROM idempotency_claims"))


@dataclass(frozen=True)
class InRedis:
    """One Redis and one prefix, connected twice."""

    pair: tuple[Redis, Redis]
    prefix: str

    def leases(self, which: int = 0, **said: Any) -> Leases:
        return RedisLeases(self.pair[which], **said)

    def adapter(self, which: int = 0) -> Coordination:
        return RedisCoordination(self.pair[which])

    async def age(self, days: int) -> None:
        script = """
            for _, key in ipairs(redis.call('KEYS', ARGV[1] .. 'idem:*')) do
              redis.call('PEXPIRE', key, redis.call('PTTL', key) - ARGV[2] * 86400000)
            end"""
        real.available().ask("EVAL", script, "0", self.prefix, str(days))

    async def pass_on(self) -> None:
        script = "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. 'seen:*')) do redis.call('PEXPIRE', key, 0) end"
        real.available().ask("EVAL", script, "0", self.prefix)

    async def keys(self) -> int:
        script = "return #redis.call('KEYS', ARGV[1] .. 'idem:*')"
        return int(real.available().ask("EVAL", script, "0", self.prefix)[1:])


services = pytest.mark.services


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=services), pytest.param("redis", marks=services)])
async def store(request, tmp_path) -> AsyncIterator[Relational | InRedis]:
    async with AsyncExitStack() as stack:
        if request.param == "redis":
            settings = real.keyed()
            first, second = (Redis(real.available().url, settings) for _ in range(2))
            stack.push_async_callback(first.close)
            stack.push_async_callback(second.close)
            yield InRedis((first, second), settings.prefix)
            return
        pair: tuple[Database, ...]
        if request.param == "sqlite":
            pair = tuple(SQLite(tmp_path / "state.db", groups=("journal", "state")) for _ in range(2))
        else:
            from quantdeck.connections.postgresql import PostgreSQL

            dsn = await available().new_database()
            pair = tuple(PostgreSQL(dsn) for _ in range(2))
            await migrate(pair[0], ("state",))
        for database in pair:
            stack.push_async_callback(database.close)
        yield Relational((pair[0], pair[1]))


@pytest.fixture
def journal(store):
    return store.leases()


@pytest.fixture
def other(store):
    return store.leases(1)


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


async def test_a_lease_that_ran_out_is_unknown_and_not_free(store, other):
    deed = Deed()
    deed.gate.shut()
    slow = asyncio.create_task(store.leases(lease_s=0).run(SLOT, deed))
    await deed.gate.arrived.wait()
    with pytest.raises(Unknown):
        await other.run(SLOT, Deed())
    deed.gate.open()
    await slow
    assert (await other.run(SLOT, Deed())).replayed, "its holder lived, and now it is known"


async def test_a_slot_that_changes_nothing_is_never_unknown(store, other):
    repeatable = Slot(SLOT.scope, SLOT.key, SLOT.fingerprint, repeatable=True)
    broken = Deed()
    broken.failure = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await other.run(repeatable, broken)
    dead = Deed()
    dead.gate.shut()
    lost = asyncio.create_task(store.leases(lease_s=0).run(repeatable, dead))
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


async def test_a_late_answer_is_not_that_of_who_has_the_slot_by_then(store, other):
    repeatable = Slot(SLOT.scope, SLOT.key, SLOT.fingerprint, repeatable=True)
    late = Deed(b"late")
    late.gate.shut()
    slow = asyncio.create_task(store.leases(lease_s=0).run(repeatable, late))
    await late.gate.arrived.wait()
    assert (await other.run(repeatable, Deed(b"mine"))).answer == b"mine"
    late.gate.open()
    assert (await slow).answer == b"late", "it is what its own caller asked for"
    assert await other.run(repeatable, Deed()) == Recorded(b"mine", replayed=True)


async def test_a_key_is_kept_for_a_day_and_then_free(store, journal):
    await journal.run(SLOT, Deed())
    assert KEEP.total_seconds() == 86_400
    await store.age(1)
    assert not (await journal.run(Slot(SLOT.scope, SLOT.key, "another"), Deed())).replayed


async def test_old_keys_are_swept_away_by_new_ones(store, journal):
    for number in range(5):
        await journal.run(Slot("alice:save", f"k{number}", "f"), Deed())
    assert await store.keys() == 5
    await store.age(2)
    await journal.run(Slot("alice:save", "new", "f"), Deed())
    assert await store.keys() == 1


async def test_a_name_can_be_said_once_by_any_of_them(store):
    told = await asyncio.gather(*(store.adapter(which).first("n", 300) for which in (0, 1) * 10))
    assert sorted(told) == [False] * 19 + [True]
    assert await store.adapter(1).first("another", 300)


async def test_a_name_can_be_said_again_when_its_time_is_over(store):
    assert await store.adapter().first("n", 300)
    await store.pass_on()
    assert await store.adapter(1).first("n", 300)
    assert not await store.adapter().first("n", 300)


async def test_a_minute_has_so_many_calls_for_each_client_and_tool(store):
    adapter = store.adapter()
    grants = [await adapter.take("alice", "save", 2) for _ in range(3)]
    assert [(grant.granted, grant.limit, grant.remaining) for grant in grants] == [
        (True, 2, 1), (True, 2, 0), (False, 2, 0),
    ]  # fmt: skip
    assert all(0 < grant.reset_s <= 60 for grant in grants)
    assert (await adapter.take("bob", "save", 2)).granted
    assert (await adapter.take("alice", "look", 2)).granted


async def test_a_limit_of_none_at_all_grants_nothing(store):
    grant = await store.adapter().take("alice", "save", 0)
    assert (grant.granted, grant.remaining) == (False, 0)
    assert 0 < grant.reset_s <= 60


async def test_the_embedded_adapter_is_the_port(tmp_path):
    def none() -> Database:
        raise AssertionError("opened")

    adapter: Coordination = Embedded(none, SlidingWindows(clock=Ticks()))
    assert not adapter.shared
    await adapter.put("key", b"value", 60)
    assert await adapter.get("key") is None, "the in-process cache has what there is"


async def test_nothing_is_opened_before_it_is_needed():
    def opened() -> Database:
        raise AssertionError("opened")

    adapter = Embedded(opened)
    assert (await adapter.take("alice", "save", 1)).granted
    effect: Callable[[], Awaitable[bytes]] = Deed()
    with pytest.raises(AssertionError, match="opened"):
        await adapter.journal.run(SLOT, effect)
