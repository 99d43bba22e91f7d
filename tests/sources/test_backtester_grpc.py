"""Backtests by a service: what is said where it is down, slow, killed or full, and how many connections there are."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from quantdeck.app import open_app
from quantdeck.connections.grpc import Channels, place
from quantdeck.core.errors import Busy, QueryFailed, Unreachable
from quantdeck.core.server import Server
from quantdeck.dialects.tradestream import tradestream
from quantdeck.settings import Grpc, MisconfiguredError, Settings
from quantdeck.sources.backtester import Backtester, TookTooLong
from quantdeck.sources.backtester.grpc import OverGrpc
from tests.support.backtester import NAMED, Service, asking, begun, job, minutes, of_engine, slow, until
from tests.support.bars import FAR
from tests.support.ports import free_port
from tests.support.program import quantdeck
from tests.support.services import missing
from tests.support.tcp import relay
from tests.support.tradestream import peer


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with begun(tmp_path_factory.mktemp("home")) as found:
        yield found


# where it is


@pytest.mark.parametrize(
    "url, options, target",
    [
        ("grpc://deck.example:6000", {}, "deck.example:6000"),
        ("grpc://deck.example", {}, "deck.example:50051"),
        ("grpc://[::1]:7000", {}, "[::1]:7000"),
        ("grpc:", {"url": "backtester:50052"}, "backtester:50052"),
        ("grpc:", {"url": "backtester"}, "backtester:50051"),
        ("grpc:", {"url": "grpcs://backtester"}, "backtester:50051"),
        ("grpc://first:1", {"url": "second:2"}, "first:1"),
    ],
)
def test_a_url_names_a_host_and_a_port(url, options, target):
    found = place(url, Grpc(**options))
    assert found.target == target
    assert found.encrypted == options.get("url", "").startswith("grpcs")


@pytest.mark.parametrize("url", ["grpc:", "grpc://", "grpc://host:none", "grpc://host/path", "grpc://me@host"])
def test_what_names_none_is_refused_at_the_start(url):
    with pytest.raises(MisconfiguredError, match=r"QUANTDECK_(BACKTESTER|GRPC__URL) .*grpc://host:50051"):
        place(url, Grpc())


@pytest.mark.parametrize("name", ["GRPC_HOST", "QUANTDECK_GRPC__URL"])
async def test_the_name_that_tradestream_has_for_it_is_enough(name, service, tmp_path):
    settings = Settings.read({"QUANTDECK_HOME": str(tmp_path), name: service.target})
    async with open_app(settings, ()) as app:
        assert await app.runtime.source(Backtester).run(job(minutes(300)), as_of=FAR) == of_engine(job(minutes(300)))
        assert app.runtime.source(Backtester).source == "grpc"


async def test_it_says_what_it_is(service):
    async with asking(service.target) as ours, peer() as theirs, asking(theirs.target) as others:
        await ours.ping()
        await others.ping()
    assert ours.about == f"a service of quantdeck at {service.target}"
    assert others.about == f"a service that is not quantdeck's at {theirs.target}"


# what goes wrong


async def test_a_service_that_is_down_is_said_and_where_it_should_be():
    target = f"127.0.0.1:{free_port()}"
    async with asking(target, connect_s=0.3) as source:
        for question in (source.run(job(minutes(9)), as_of=FAR), source.ping()):
            with pytest.raises(Unreachable, match=f"No connection to the backtester at {target}: it is down") as told:
                await question
            assert told.value.source == "grpc"


async def test_a_service_that_is_slow_is_given_up_and_its_work_ended(service):
    async with asking(service.target, deadline_s=1.0) as source:
        with pytest.raises(TookTooLong, match="Timeout: the backtester did not answer within 1 s"):
            await source.run(slow(), as_of=FAR)
    await until(lambda: not service.workers())


async def test_a_host_that_takes_connections_and_says_nothing_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with asking(f"127.0.0.1:{silent.getsockname()[1]}", connect_s=0.3) as source:
            with pytest.raises(Unreachable, match="No connection to the backtester"):
                await source.run(job(minutes(9)), as_of=FAR)


async def test_whoever_stops_waiting_has_the_work_ended(service):
    async with asking(service.target) as source:
        waiting = asyncio.ensure_future(source.run(slow(), as_of=FAR))
        await until(service.workers)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until(lambda: not service.workers())


async def test_a_service_that_is_killed_in_a_call_is_said_and_one_in_its_place_is_asked(tmp_path):
    port = free_port()
    async with asking(f"127.0.0.1:{port}") as source:
        with begun(tmp_path, port=port) as first:
            waiting = asyncio.ensure_future(source.run(slow(), as_of=FAR))
            await until(first.workers)
            left = first.workers()
            first.end(signal.SIGKILL)
            with pytest.raises(Unreachable, match=r"The connection to the backtester at .* broke"):
                await waiting
        with begun(tmp_path, port=port):
            assert await source.run(job(minutes(300)), as_of=FAR) == of_engine(job(minutes(300)))
    assert left


async def test_a_worker_that_dies_there_is_told_as_it_would_be_here(service):
    async with asking(service.target) as source:
        waiting = asyncio.ensure_future(source.run(slow(), as_of=FAR))
        await until(service.workers)
        os.kill(service.workers()[0], signal.SIGKILL)
        with pytest.raises(QueryFailed, match="The process of the backtest ended before it had a result") as told:
            await waiting
    assert told.value.source == "grpc"


async def test_a_connection_that_broke_is_made_anew(service):
    async with relay(service.target) as between, asking(between.target) as source:
        for _ in range(3):
            assert await source.run(job(minutes(300)), as_of=FAR) == of_engine(job(minutes(300)))
            between.snap()
            with suppress(Unreachable):  # which is told if the break had not been heard of yet
                await source.run(job(minutes(300)), as_of=FAR)
        assert between.opened > 1


async def test_a_host_that_vanishes_in_a_call_is_noticed_long_before_the_deadline(service):
    options = {"keepalive_interval_s": 0.5, "keepalive_timeout_s": 0.5, "deadline_s": 600}
    async with relay(service.target) as between, asking(between.target, **options) as source:
        waiting = asyncio.ensure_future(source.run(slow(), as_of=FAR))
        await until(service.workers)
        between.hold()
        with pytest.raises(Unreachable, match="broke"):
            await waiting
    await until(lambda: not service.workers())


async def test_a_connection_may_be_encrypted(tmp_path):
    authority, key = tmp_path / "authority.pem", tmp_path / "key.pem"
    program = shutil.which("openssl")
    if program is None:
        raise missing("openssl")
    named = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", authority, *named]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    secret = grpc.ssl_server_credentials([(key.read_bytes(), authority.read_bytes())])
    async with peer(credentials=secret) as theirs:
        port = theirs.target.rpartition(":")[2]
        for url, options in (("grpcs:", {"ca_file": authority}), ("grpcs:", {}), ("grpc:", {})):
            said = Grpc(**{"connect_s": 20 if options else 1.0, **options})
            source = OverGrpc(Channels(place(f"{url}//localhost:{port}", said), said), said)
            if options:
                assert (await source.run(job(minutes(300), **NAMED), as_of=FAR)).total_return == 0.25
            else:
                with pytest.raises(Unreachable):
                    await source.run(job(minutes(300), **NAMED), as_of=FAR)
            await source.close()


async def test_a_message_that_is_too_large_is_said_before_it_is_sent(service):
    async with asking(service.target, message_mb=0.1) as source:
        with pytest.raises(QueryFailed, match=r"has 0\.4 MiB, and may have 0\.1; ask for fewer bars"):
            await source.run(job(minutes(10_000)), as_of=FAR)


async def test_a_message_that_is_too_large_for_the_other_side_is_said(service):
    async with peer() as theirs, asking(theirs.target, peer_message_mb=64) as source:
        with pytest.raises(QueryFailed, match="larger than the backtester takes"):
            await source.run(job(minutes(70_000), **NAMED), as_of=FAR)


async def test_a_service_that_is_full_is_busy(tmp_path):
    with begun(tmp_path, QUANTDECK_BACKTESTS__PROCESSES="1", QUANTDECK_BACKTESTS__WAITING="0") as full:
        async with asking(full.target) as source:
            waiting = asyncio.ensure_future(source.run(slow(), as_of=FAR))
            await until(full.workers)
            with pytest.raises(Busy, match="busy with other work; try again"):
                await source.run(job(minutes(300)), as_of=FAR)
            waiting.cancel()
            await asyncio.wait([waiting])


async def test_what_is_no_backtester_is_said():
    other = grpc.aio.server()
    port = other.add_insecure_port("127.0.0.1:0")
    await other.start()
    async with asking(f"127.0.0.1:{port}") as source:
        with pytest.raises(QueryFailed, match=f"What answers at 127.0.0.1:{port} is no backtester"):
            await source.run(job(minutes(300), **NAMED), as_of=FAR)
    await other.stop(None)


# the pool


@pytest.mark.parametrize("most", [1, 3])
async def test_no_more_connections_are_opened_than_the_settings_allow(service, most):
    async with relay(service.target) as between, asking(between.target, max_connections=most) as source:
        jobs = [job(minutes(3000, seed=number)) for number in range(12)]
        for _ in range(2):
            found = await asyncio.gather(*(source.run(one, as_of=FAR) for one in jobs))
            assert found == [of_engine(one) for one in jobs]
        assert between.opened == most


async def test_one_after_the_other_shares_one_connection(service):
    async with relay(service.target) as between, asking(between.target) as source:
        for _ in range(4):
            await source.run(job(minutes(300)), as_of=FAR)
        assert between.opened == 1


# what a person is told of it


@dataclass
class Told:
    source: str


async def run_backtest(backtester: Backtester) -> Told:
    """Run a backtest"""
    return Told(backtester.source)


TOOL = tradestream.tool(errors=())(run_backtest)


async def health(home: Path, **settings: str) -> Any:
    said = Settings.read({"QUANTDECK_HOME": str(home), **settings})
    async with open_app(said, (Server(name="tests", purpose="of this file", tools=(TOOL,)),)) as app:
        (found,) = await app.health()
    return found


async def test_health_says_who_runs_backtests(service, tmp_path):
    here = await health(tmp_path)
    assert (here.source, here.kind, here.status) == ("backtester", "quantdeck", "healthy")
    assert here.advice == "this machine, 2 processes at a time for large ones"
    there = await health(tmp_path, QUANTDECK_BACKTESTER=f"grpc://{service.target}")
    assert (there.kind, there.status) == ("grpc", "healthy")
    assert there.advice == f"a service of quantdeck at {service.target}"


async def test_a_demo_world_may_be_backtested_elsewhere(service, tmp_path):
    """A service has no data of its own, so nothing real comes in by it."""
    assert quantdeck("demo", "--days", "1", "--quiet", home=tmp_path).returncode == 0
    assert (await health(tmp_path, GRPC_HOST=service.target)).status == "healthy"


async def test_health_says_which_setting_to_look_at_where_nobody_answers(tmp_path):
    target = f"127.0.0.1:{free_port()}"
    for name in ("QUANTDECK_BACKTESTER", "QUANTDECK_GRPC__URL"):
        said = {name: f"grpc://{target}", "QUANTDECK_GRPC__CONNECT_S": "0.2"}
        found = await health(tmp_path, **said)
        assert (found.kind, found.status, found.setting) == ("grpc", "unhealthy", name)
        assert f"No connection to the backtester at {target}" in found.advice
