"""What replicas share through Redis, and what is left of it while Redis is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from quantdeck.connections.redis import Redis, Script
from quantdeck.core.errors import SourceError
from quantdeck.core.once import Slot
from quantdeck.sources.coordination import Coordination
from quantdeck.sources.coordination.redis import RedisCoordination
from tests.support.redis import available, keyed, own_server

pytestmark = pytest.mark.services


@pytest.fixture
async def replicas() -> AsyncIterator[list[RedisCoordination]]:
    settings = keyed()
    found = [RedisCoordination(Redis(available().url, settings)) for _ in range(2)]
    yield found
    for one in found:
        await one.close()


async def done() -> bytes:
    return b"{}"


async def test_a_limit_is_that_of_all_replicas_together(replicas):
    grants = await asyncio.gather(*(replicas[number % 2].take("alice", "save", 25) for number in range(40)))
    assert sum(grant.granted for grant in grants) == 25
    assert sorted(grant.remaining for grant in grants if grant.granted) == list(range(25))


async def test_a_refused_call_costs_nothing(replicas):
    redis = replicas[0]._redis
    for _ in range(5):
        await replicas[0].take("alice", "save", 2)
    (key,) = await _keys(redis, "rate:*")
    assert available().ask("ZCARD", key) == b":2"


async def test_a_call_counts_for_sixty_seconds_by_the_clock_of_redis(replicas):
    await replicas[0].take("alice", "save", 2)
    (key,) = await _keys(replicas[0]._redis, "rate:*")
    await _shift(key, -59)
    grant = await replicas[1].take("alice", "save", 2)
    assert (grant.granted, grant.remaining) == (True, 0)
    assert 0 < grant.reset_s <= 1
    assert not (await replicas[0].take("alice", "save", 2)).granted
    await _shift(key, -2)
    assert (await replicas[0].take("alice", "save", 2)).granted


async def test_a_clock_that_was_set_back_stops_nobody(replicas):
    for _ in range(2):
        await replicas[0].take("alice", "save", 2)
    (key,) = await _keys(replicas[0]._redis, "rate:*")
    await _shift(key, 3600)
    grant = await replicas[0].take("alice", "save", 2)
    assert (grant.granted, grant.remaining) == (True, 1)


async def test_a_window_nobody_uses_is_forgotten(replicas):
    await replicas[0].take("alice", "save", 2)
    (key,) = await _keys(replicas[0]._redis, "rate:*")
    assert 0 < int(available().ask("PTTL", key)[1:]) <= 60_000


async def test_what_one_has_put_another_gets_for_as_long_as_was_said(replicas):
    adapter: Coordination = replicas[0]
    assert adapter.shared
    await adapter.put("key", b"\x00value", 60)
    found = await replicas[1].get("key")
    assert found is not None
    assert found[0] == b"\x00value"
    assert 59 < found[1] <= 60
    (key,) = await _keys(replicas[0]._redis, "kept:*")
    available().ask("PEXPIRE", key, "0")
    assert await replicas[1].get("key") is None


async def test_without_redis_each_replica_limits_alone_and_keys_are_refused():
    with own_server() as server:
        adapter = RedisCoordination(Redis(server.url, keyed()))
        await adapter.put("key", b"value", 60)
        assert (await adapter.take("alice", "save", 1)).granted
        with server.stopped():
            assert [(await adapter.take("alice", "save", 2)).granted for _ in range(3)] == [True, True, False]
            await adapter.put("key", b"other", 60)
            assert await adapter.get("key") is None
            for refused in (adapter.journal.run(Slot("a", "k", "f"), done), adapter.first("n", 60), adapter.ping()):
                with pytest.raises(SourceError, match="Redis"):
                    await refused
        assert (await adapter.take("alice", "save", 1)).granted
        assert not (await adapter.journal.run(Slot("a", "k", "f"), done)).replayed
        await adapter.close()


async def test_the_log_says_once_that_sharing_ended_and_once_that_it_goes_on(caplog):
    with own_server() as server:
        adapter = RedisCoordination(Redis(server.url, keyed()))
        with server.stopped():
            for _ in range(3):
                await adapter.take("alice", "save", 9)
        for _ in range(3):
            await adapter.take("alice", "save", 9)
        await adapter.close()
    said = [record.message for record in caplog.records if record.name.startswith("quantdeck")]
    assert said == ["shared_no_more", "shared_again"]


async def _keys(redis: Redis, pattern: str) -> list[str]:
    return [key.decode() for key in await redis.run(Script("return redis.call('KEYS', KEYS[1])"), [pattern])]


async def _shift(key: str, seconds: float) -> None:
    """Let every call of a window have been so much later."""
    script = """
        for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
          redis.call('ZINCRBY', KEYS[1], ARGV[1], member)
        end"""
    available().ask("EVAL", script, "1", key, str(seconds * 1_000_000))
