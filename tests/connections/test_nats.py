"""The connection to NATS, against a real server."""

from __future__ import annotations

import asyncio

import pytest

from quantdeck.connections.nats import Nats
from quantdeck.core.errors import Denied, SourceError, Unreachable
from quantdeck.settings import MisconfiguredError
from tests.support.nats import available, named, own_server

pytestmark = pytest.mark.services
PATIENT = {"connect_s": 10, "read_s": 10}


@pytest.fixture
async def nats():
    connection = Nats(available().url, named(**PATIENT))
    yield connection
    await connection.close()


async def test_a_value_is_written_only_after_the_one_that_was_read(nats):
    assert await nats.get("things-1", "k") is None
    assert await nats.put("things-1", "k", b"1", after=None)
    assert not await nats.put("things-1", "k", b"2", after=None)
    value, revision = await nats.get("things-1", "k")
    assert value == b"1"
    before = await nats.last_write("things-1")
    assert await nats.put("things-1", "k", b"2", after=revision)
    assert not await nats.put("things-1", "k", b"3", after=revision)
    assert (await nats.get("things-1", "k"))[0] == b"2"
    assert await nats.last_write("things-1") > before


async def test_nothing_is_connected_before_the_first_question():
    await Nats("nats://127.0.0.1:1", named()).close()


async def test_a_server_that_is_not_there_is_out_of_reach_within_the_time_to_connect():
    connection = Nats("nats://127.0.0.1:1", named(connect_s=0.3))
    async with asyncio.timeout(15):
        with pytest.raises(Unreachable, match="NATS"):
            await connection.ping()
    await connection.close()


async def test_a_server_that_stops_is_missed_at_once_and_back_without_a_restart():
    with own_server() as server:
        connection = Nats(server.url, named(**PATIENT))
        assert await connection.put("kept", "k", b"1", after=None)
        with server.stopped():
            assert "NATS" in await failure_of(connection.ping)
            assert "broke" in await failure_of(lambda: connection.get("kept", "k"))
        assert (await _again(lambda: connection.get("kept", "k")))[0] == b"1"
        await connection.close()


async def failure_of(ask) -> str:
    """What is said once it fails: that a connection is gone is noticed when it is used."""
    async with asyncio.timeout(20):
        while True:
            try:
                await ask()
            except Unreachable as error:
                return error.message


async def _again(ask):
    """Until it answers, as a caller who was told to try again."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await ask()
            except Unreachable:
                await asyncio.sleep(0.02)


async def test_a_server_without_jetstream_says_so():
    with own_server("-DV") as server:
        connection = Nats(server.url, named(**PATIENT))
        with pytest.raises(Unreachable, match="JetStream"):
            await connection.ping()
        await connection.close()


async def test_wrong_credentials_are_denied_and_not_repeated():
    with own_server("-js", "--user", "quant", "--pass", "right") as server:
        wrong = Nats(server.url.replace("//", "//quant:hunter2@"), named(**PATIENT))
        with pytest.raises((Denied, Unreachable)) as refused:
            await wrong.ping()
        assert "hunter2" not in str(refused.value)
        await wrong.close()
        right = Nats(server.url.replace("//", "//quant:right@"), named(**PATIENT))
        await right.ping()
        await right.close()


async def test_once_closed_it_stays_closed(nats):
    await nats.ping()
    await nats.close()
    with pytest.raises(SourceError):
        await nats.ping()


@pytest.mark.parametrize(
    "url", ["nats:", "nats://", "nats://h:0", "nats://h:99999", "nats://h/path", "nats://s3cret@h:x"]
)
def test_what_is_no_address_is_refused_and_not_repeated(url):
    with pytest.raises(MisconfiguredError) as refused:
        Nats(url, named())
    assert "s3cret" not in str(refused.value)
