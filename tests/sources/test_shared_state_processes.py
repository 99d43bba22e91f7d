"""Eight processes on one shared state, and a scope of thousands of keys that all expire at once."""

from __future__ import annotations

import asyncio
import multiprocessing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quantdeck.connections.redis import Redis
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.clock import Now
from quantdeck.settings import Redis as Settings
from quantdeck.sources.shared_state import Quota, QuotaExceeded, SharedState
from quantdeck.sources.shared_state.embedded import Embedded
from quantdeck.sources.shared_state.redis import RedisSharedState
from tests.support import redis
from tests.support.shared_states import opened

PROCESSES, ROUNDS = 8, 25
QUOTA = Quota(16 * 2**20, 10_000)


def now() -> Now:
    return Now.of(datetime.now(UTC), fixed=False)


def _work(place: str, prefix: str, number: int) -> None:
    """Write and read one key that all have, and write one that is this process's own."""

    async def run() -> None:
        if place.startswith("redis"):
            connection = Redis(place, Settings(prefix=prefix))
            state: SharedState = RedisSharedState(connection, QUOTA)
            close = connection.close
        else:
            database = SQLite(Path(place), groups=("journal", "state"))
            state, close = Embedded(database, QUOTA), database.close
        for turn in range(ROUNDS):
            value = f'"{number}:{turn}"'.encode()
            await state.set("c", "all", value, ttl_s=300, at=now())
            await state.set("c", f"own{number}", value, ttl_s=300, at=now())
            assert await state.get("c", "all", as_of=now()) is not None
            own = await state.get("c", f"own{number}", as_of=now())
            assert own is not None
            assert own.value == value
        await close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("redis", marks=pytest.mark.services)])
async def test_eight_processes_lose_no_write_and_no_count(kind, tmp_path):
    prefix = redis.keyed().prefix
    place = redis.available().url if kind == "redis" else str(tmp_path / "state.db")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_work, args=(place, prefix, number)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    if kind == "redis":
        connection = Redis(place, Settings(prefix=prefix))
        state: SharedState = RedisSharedState(connection, QUOTA)
        close = connection.close
    else:
        database = SQLite(Path(place), groups=("journal", "state"))
        state, close = Embedded(database, QUOTA), database.close
    entry = await state.get("c", "all", as_of=now())
    assert entry is not None
    assert entry.value.endswith(f':{ROUNDS - 1}"'.encode())
    assert entry.access_count == PROCESSES * ROUNDS + 1
    await close()


@pytest.mark.services
async def test_thousands_of_keys_that_expire_at_once_are_settled_by_the_next_write(tmp_path):
    async with opened("redis", tmp_path) as store:
        state = store.state(quota=QUOTA)
        await asyncio.gather(*(state.set("c", f"k{n}", b"1", ttl_s=10, at=now()) for n in range(2000)))
        await store.pass_on(11)
        await state.set("c", "one", b"1", ttl_s=10, at=now())
        with pytest.raises(QuotaExceeded) as full:
            await store.state(quota=Quota(1000, 1)).set("c", "two", b"1", ttl_s=10, at=now())
        assert full.value.used == 1
