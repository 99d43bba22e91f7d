"""The process of the service: health, reflection, keepalive, what it refuses to take on, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quantdeck.backtesting.messages.jobs import as_request
from quantdeck.backtesting.messages.results import of_ours
from quantdeck.backtesting.protocol import backtesting_pb2 as protocol
from tests.backtesting.service.asking import client, refused, request
from tests.support.backtester import begun, minutes, slow, until
from tests.support.program import quantdeck

NAME = "backtesting.BacktestingService"
SLOW = as_request(slow().spec, {}, "BTC/USD", slow().bars, slow().terms)


async def health(asking, service=""):
    stub = health_pb2_grpc.HealthStub(asking.channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


async def test_it_says_that_it_is_well(asking):
    assert [await health(asking, name) for name in ("", NAME)] == ["SERVING", "SERVING"]
    with pytest.raises(grpc.aio.AioRpcError, match="NOT_FOUND"):
        await health(asking, "another.Service")


async def test_it_says_what_it_can_do(asking):
    stub = reflection_pb2_grpc.ServerReflectionStub(asking.channel)
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol=NAME),
    ]
    told = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]
    assert NAME in [one.name for one in told[0].list_services_response.service]
    assert any(b"RunWalkForwardValidation" in one for one in told[1].file_descriptor_response.file_descriptor_proto)


def test_nobody_is_sent_away_for_asking_often_whether_it_is_there(service):
    """In frames of HTTP/2, since no client of gRPC can be made to ask like this."""
    host, _, port = service.target.rpartition(":")
    ping = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + b"whatever"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        answered, heard = 0, b""
        for _ in range(40):
            connection.sendall(ping)
        while answered < 40:
            heard += connection.recv(65536)
            while len(heard) >= 9 and len(heard) >= 9 + int.from_bytes(heard[:3], "big"):
                kind, flags, size = heard[3], heard[4], int.from_bytes(heard[:3], "big")
                assert kind != 7, "it hangs up"  # GOAWAY
                answered += kind == 6 and flags & 1
                heard = heard[9 + size :]


@pytest.mark.parametrize("how", ["cancelled", "too late"])
async def test_work_for_which_nobody_waits_is_killed(service, asking, how):
    call = asking.ask(SLOW, timeout=1.5 if how == "too late" else None)
    waiting = asyncio.ensure_future(refused(call))
    await until(lambda: service.workers() or waiting.done())
    if how == "cancelled":
        assert not waiting.done()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    else:
        assert (await waiting)[0] == "DEADLINE_EXCEEDED"
    await until(lambda: not service.workers())


async def test_work_of_a_client_that_dies_is_killed(service):
    async with client(service.target) as asking:
        call = asking.ask(SLOW)
        waiting = asyncio.ensure_future(refused(call))
        await until(service.workers)
    await asyncio.wait([waiting])
    await until(lambda: not service.workers())


async def test_a_batch_and_a_validation_are_killed_as_well(service, asking):
    candles = request(minutes(60_000)).candles
    many = [request(minutes(0), "ADX_STOCHASTIC", adxPeriod=n).strategy for n in range(2, 1500)]
    batch = protocol.BatchBacktestRequest(candles=candles, strategy_name="ADX_STOCHASTIC", strategies=many)
    windows = protocol.WalkForwardConfig(train_window_bars=50_000, test_window_bars=9_000, step_bars=1)
    validation = protocol.WalkForwardRequest(candles=candles, strategy=many[0], config=windows)
    for asked, method in ((batch, "RunBatchBacktest"), (validation, "RunWalkForwardValidation")):
        if method == "RunWalkForwardValidation":
            asked.config.step_bars = 2
        call = asking.ask(asked, method)
        waiting = asyncio.ensure_future(refused(call))
        await until(service.workers)
        assert not waiting.done()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until(lambda: not service.workers())


async def test_a_worker_that_dies_is_told_and_the_service_goes_on(service, asking):
    waiting = asyncio.ensure_future(refused(asking.ask(SLOW)))
    await until(service.workers)
    os.kill(service.workers()[0], signal.SIGKILL)
    status, sentence = await waiting
    assert status == "INTERNAL"
    assert "ended before it had a result" in sentence
    assert (await asking.ask(request(minutes(50)))).HasField("cumulative_return")


async def test_no_more_is_taken_on_than_there_are_places(tmp_path):
    with begun(tmp_path, QUANTDECK_BACKTESTS__PROCESSES="1", QUANTDECK_BACKTESTS__WAITING="1") as service:
        async with client(service.target) as asking:
            held = [asking.ask(SLOW) for _ in range(2)]
            waits = [asyncio.ensure_future(refused(one)) for one in held]
            await until(service.workers)
            status, sentence = "", ""
            while status != "RESOURCE_EXHAUSTED":  # until the second, too, has arrived
                answer = asking.ask(request(minutes(50)))
                try:
                    await answer
                except grpc.aio.AioRpcError as error:
                    status, sentence = error.code().name, error.details()
            assert "it holds 2 requests" in sentence
            assert await health(asking) == "SERVING"
            assert len(service.workers()) == 1
            for one in held:
                one.cancel()
            await asyncio.wait(waits)
            await until(lambda: not service.workers())
            while True:  # until their places are free
                try:
                    assert (await asking.ask(request(minutes(50)))).HasField("cumulative_return")
                    break
                except grpc.aio.AioRpcError as error:
                    assert error.code().name == "RESOURCE_EXHAUSTED"  # noqa: PT017 - anything else is a failure


async def test_the_first_signal_lets_finish_what_has_begun_and_nothing_more_in(tmp_path):
    long = slow(minutes(6_000))
    asked = as_request(long.spec, {}, "BTC/USD", long.bars, long.terms)
    with begun(tmp_path) as service:
        async with client(service.target) as asking, client(service.target) as later:
            assert await health(later) == "SERVING"
            waiting = asyncio.ensure_future(asking.ask(asked))
            await until(service.workers)
            service.end()
            while True:  # until the signal has arrived
                answer = later.ask(request(minutes(50)))
                try:
                    await answer
                except grpc.aio.AioRpcError as error:
                    # gRPC's own word for what arrives in the moment of the signal is CANCELLED.
                    assert error.code().name in {"UNAVAILABLE", "CANCELLED"}  # noqa: PT017 - all else is a failure
                    break
            assert of_ours(await waiting).exposure is not None
        assert service.ended() == 0


async def test_the_second_signal_ends_at_once(tmp_path):
    with begun(tmp_path, QUANTDECK_BACKTESTS__DRAIN_S="600") as service:
        async with client(service.target) as asking:
            waiting = asyncio.ensure_future(refused(asking.ask(SLOW)))
            await until(service.workers)
            workers = service.workers()
            service.end()
            service.end(signal.SIGINT)
            assert (await waiting)[0] in {"UNAVAILABLE", "CANCELLED"}
        assert service.ended() == 0
        assert workers
        assert not service.workers()


async def test_whoever_watches_does_not_hold_up_the_end(tmp_path):
    with begun(tmp_path, QUANTDECK_BACKTESTS__DRAIN_S="600") as service:
        async with client(service.target) as asking:
            watching = health_pb2_grpc.HealthStub(asking.channel).Watch(health_pb2.HealthCheckRequest(service=NAME))
            assert (await watching.read()).status == health_pb2.HealthCheckResponse.SERVING
            service.end()
            assert (await watching.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            watching.cancel()
        assert service.ended() == 0


def test_an_address_that_others_can_reach_must_be_wanted(tmp_path):
    done = quantdeck("backtester", "--host", "0.0.0.0", "--port", "0", home=tmp_path)  # noqa: S104 - it is refused
    assert done.returncode == 2
    assert "can be reached from other machines" in done.stderr
    with begun(tmp_path, "--host", "0.0.0.0", "--open") as service:  # noqa: S104 - it is what is looked at
        assert service.target.startswith("0.0.0.0:")


def test_a_port_that_is_taken_is_said(service, tmp_path):
    port = service.target.rpartition(":")[2]
    done = quantdeck("backtester", "--port", port, home=tmp_path)
    assert done.returncode == 2
    assert f"127.0.0.1:{port} cannot be bound: Address already in use" in done.stderr
    assert "70000 is no port" in quantdeck("backtester", "--port", "70000", home=tmp_path).stderr
