"""Redis's connection: how many there are, what becomes of failures, and that nothing needs a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quantdeck.connections.redis import Redis, Script
from quantdeck.core.errors import Denied, QueryFailed, SourceError, Unreachable
from quantdeck.settings import MisconfiguredError
from tests.support.redis import available, keyed, own_server
from tests.support.runtime import turns
from tests.support.slow_wire import SlowWire

pytestmark = pytest.mark.services

ECHO = Script("return {KEYS[1], ARGV[1]}")
WRONG = Script("return redis.call('NOSUCH')")


@asynccontextmanager
async def connected(url: str, **said: Any) -> AsyncIterator[Redis]:
    redis = Redis(url, keyed(**{"prefix": "p:", **said}))
    try:
        yield redis
    finally:
        await redis.close()


@asynccontextmanager
async def proxied(**said: Any) -> AsyncIterator[tuple[SlowWire, Redis]]:
    async with SlowWire(available().port).laid() as wire, connected(f"redis://127.0.0.1:{wire.port}", **said) as redis:
        yield wire, redis


async def test_a_script_is_asked_with_prefixed_keys_and_whole_bytes():
    async with connected(available().url) as redis:
        assert await redis.run(ECHO, ["k"], b"\x00\xff") == [b"p:k", b"\x00\xff"]


async def test_a_server_that_has_forgotten_its_scripts_is_told_them_again():
    with own_server() as server:
        async with connected(server.url) as redis:
            await redis.run(ECHO, ["k"], "a")
            server.ask("SCRIPT", "FLUSH")
            assert await redis.run(ECHO, ["k"], "b") == [b"p:k", b"b"]


async def test_never_more_connections_than_the_settings_say():
    async with proxied(max_connections=3) as (wire, redis):
        await asyncio.gather(*(redis.run(ECHO, ["k"], str(number)) for number in range(40)))
        assert wire.most_connections <= 3


async def test_one_after_another_share_one_connection():
    async with proxied() as (wire, redis):
        for _ in range(5):
            await redis.ping()
        assert wire.most_connections == 1


async def test_who_waits_too_long_for_a_free_connection_is_told():
    async with proxied(max_connections=1, connect_s=0.05) as (wire, redis):
        await redis.ping()
        wire.stall()
        first = asyncio.create_task(redis.ping())
        await turns()
        with pytest.raises(Unreachable, match="No free connection to Redis: all 1 are in use"):
            await redis.ping()
        wire.flow()
        await first


async def test_a_server_that_is_down_is_unreachable_and_back_without_a_restart():
    with own_server() as server:
        async with connected(server.url) as redis:
            await redis.ping()
            with server.stopped():
                for _ in range(2):
                    with pytest.raises(Unreachable, match="connection to Redis"):
                        await redis.ping()
            assert await redis.run(ECHO, ["k"], "again") == [b"p:k", b"again"]


async def test_a_server_that_was_down_at_first_is_reached_later():
    with own_server() as server:
        server.stop()
        async with connected(server.url) as redis:
            with pytest.raises(Unreachable, match="down or out of reach"):
                await redis.ping()
            server.start()
            await redis.ping()


async def test_a_silent_server_is_a_timeout_and_nobody_knows_what_it_did():
    async with proxied(read_s=0.05) as (wire, redis):
        await redis.ping()
        wire.stall()
        with pytest.raises(Unreachable, match="timed out") as failed:
            await redis.run(ECHO, ["k"], "a")
        assert failed.value.details == {"outcome": "unknown"}
        wire.flow()
        assert await redis.run(ECHO, ["k"], "b") == [b"p:k", b"b"], "no late answer may be taken for this one's"


async def test_a_connection_that_breaks_is_told_with_its_outcome():
    async with proxied() as (wire, redis):
        await redis.ping()
        wire.stall()
        asked = asyncio.create_task(redis.run(ECHO, ["k"], "a"))
        await turns()
        wire.cut()
        with pytest.raises(Unreachable, match="broke") as failed:
            await asked
        assert failed.value.details == {"outcome": "unknown"}
        wire.flow()
        await redis.ping()


async def test_who_gives_up_leaves_no_answer_for_the_next():
    async with proxied(max_connections=1) as (wire, redis):
        await redis.ping()
        for number in range(5):
            wire.stall()
            given_up = asyncio.create_task(redis.run(ECHO, ["k"], "late"))
            await turns(number * 5)
            given_up.cancel()
            await asyncio.wait({given_up})
            wire.flow()
            assert await redis.run(ECHO, ["k"], str(number)) == [b"p:k", str(number).encode()]


async def test_what_the_server_refuses_is_told_in_our_words():
    async with connected(available().url) as redis:
        with pytest.raises(QueryFailed, match="Redis refused the question") as failed:
            await redis.run(WRONG, ["k"])
        assert "NOSUCH" not in failed.value.message
        await redis.ping()


@pytest.mark.parametrize("password", ["", "wrong"])
async def test_credentials_that_are_missing_or_wrong_are_denied(password):
    with own_server(password="right") as server:
        async with connected(server.url.replace("right", password).replace(":@", "")) as redis:
            with pytest.raises(Denied, match="Redis"):
                await redis.run(ECHO, ["k"], "a")
        async with connected(server.url) as redis:
            await redis.ping()


async def test_a_user_who_may_not_run_our_scripts_is_told_so_by_a_ping():
    with own_server() as server:
        server.ask("ACL", "SETUSER", "some", "on", ">pw", "~quantdeck:*", "+@read", "+@write", "+@scripting", "+time")
        server.ask("ACL", "SETUSER", "other", "on", ">pw", "~quantdeck:*", "+ping", "+get")
        async with connected(f"redis://some:pw@127.0.0.1:{server.port}", prefix="quantdeck:") as redis:
            await redis.ping()
        for user, prefix in (("other", "quantdeck:"), ("some", "elsewhere:")):
            async with connected(f"redis://{user}:pw@127.0.0.1:{server.port}", prefix=prefix) as redis:
                with pytest.raises(Denied, match="ACL"):
                    await redis.ping()


async def test_a_closed_connection_says_so():
    redis = Redis(available().url, keyed())
    await redis.ping()
    await redis.close()
    with pytest.raises(Unreachable, match="closed"):
        await redis.ping()


@pytest.mark.parametrize(
    "url",
    [
        "redis:",
        "redis://",
        "redis://:s3cret@",
        "redis://host:99999",
        "redis://host:port",
        "redis://host/name",
        "redis://host/0?socket_timeout=1",
        "redis://:pass#word@host",
        "redis://[::1",
    ],
)
def test_a_url_that_names_no_server_is_refused_without_being_repeated(url):
    with pytest.raises(MisconfiguredError, match="QUANTDECK_STATE") as refused:
        Redis(url, keyed())
    assert "s3cret" not in str(refused.value)
    assert "pass" not in str(refused.value).replace("password", "")


async def test_a_password_with_signs_in_it_is_decoded():
    with own_server(password="a#b/c@d") as server:
        async with connected(f"redis://:a%23b%2Fc%40d@127.0.0.1:{server.port}/3") as redis:
            await redis.ping()


@pytest.mark.parametrize("failure", [Unreachable, Denied])
def test_failures_are_of_the_tree_that_dialects_translate(failure):
    assert issubclass(failure, SourceError)


async def test_whoever_is_cancelled_at_any_moment_is_gone_at_once():
    async with proxied(max_connections=4, read_s=30) as (wire, redis):
        await redis.ping()
        wire.stall()
        for number in range(30):
            asked = [asyncio.create_task(redis.run(ECHO, ["k"], "a")) for _ in range(8)]
            await turns(number)
            for task in asked:
                task.cancel()
            await turns(200)
            assert all(task.cancelled() for task in asked), f"after {number} turns of the loop"
        wire.flow()
        await redis.ping()
