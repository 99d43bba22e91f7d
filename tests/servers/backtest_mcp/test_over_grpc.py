"""run_backtest by a service over gRPC: through a client, with a real service up, down, slow, and killed in the call."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from quantdeck.domain.timeframes import MINUTE
from quantdeck.settings import Backtests, Grpc
from quantdeck.sources.backtester import Backtester
from tests.servers.backtest_mcp.conftest import NOON_S, fill, hours
from tests.servers.backtest_mcp.test_long_backtests import ENDLESS, QUICK
from tests.support.backtester import NAMED, Service, begun, until
from tests.support.bars import every, walk
from tests.support.desk import add_spec
from tests.support.ports import free_port
from tests.support.tradestream import peer

PATIENT = Grpc(connect_s=20)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with begun(tmp_path / "service", QUANTDECK_BACKTESTS__PROCESSES="1", QUANTDECK_BACKTESTS__WAITING="0") as found:
        yield found


async def opened(served, target, **said):
    server = await served(backtester=f"grpc://{target}", **{"grpc": PATIENT, **said})
    await fill(server, "BTC/USD", hours(3000))
    return server


async def minutes(server):
    many = 91 * 1440
    await fill(server, "ETH/USD", walk(every(60, NOON_S // 60 * 60 - many * 60, many)), MINUTE)


async def test_the_answer_is_that_of_ones_own_process_and_says_where_it_was_run(backtests, service, serve):
    there, here = await opened(backtests, service.target), await serve("backtest-mcp")
    one, other = [await server("run_backtest", **QUICK) for server in (here, there)]
    assert one["data"]["trades"] > 10
    assert one["data"] == other["data"]
    assert other["_metadata"]["source"] == "grpc"


async def test_it_is_written_into_a_log_as_one_of_ones_own_process_is(backtests, service, tmp_path, serve):
    events = tmp_path / "home" / "events.db"
    server = await opened(backtests, service.target, backtests=Backtests(events=events))
    data = (await server("run_backtest", **QUICK))["data"]
    log = await serve("backtest-events")
    (run,) = (await log("list_backtest_runs"))["runs"]
    assert run["id"] == data["run_id"]
    asked = {"runId": run["id"], "eventType": "TradeExecution", "propertyPath": "$.RealizedPnL"}
    fills = (await log("aggregate_metrics", **asked, aggregations=["count"]))["metadata"]["totalEvents"]
    assert fills in {2 * data["trades"], 2 * data["trades"] + 1}


async def test_a_service_of_another_program_tells_no_trades_and_that_is_said(backtests, tmp_path):
    async with peer() as other:
        server = await opened(backtests, other.target, backtests=Backtests(events=tmp_path / "events.db"))
        rules = {name: rows for name, rows in NAMED.items() if name != "numbers"}
        await add_spec(server.desk, "SMA_RSI", **rules, exit_conditions=[
            {"type": "OVER_CONSTANT", "indicator": "rsi", "params": {"threshold": 70}},
        ])  # fmt: skip
        code, sentence = await server.refused("run_backtest", **{**QUICK, "strategy_id": "SMA_RSI"})
    assert code == "GRPC_ERROR"
    assert "QUANTDECK_BACKTESTS__EVENTS" in sentence


async def test_a_service_that_is_down_and_one_that_comes_back(backtests, tmp_path):
    port = free_port()
    server = await opened(backtests, f"127.0.0.1:{port}", grpc=Grpc(connect_s=1))
    code, sentence = await server.refused("run_backtest", **QUICK)
    assert code == "GRPC_ERROR"
    assert "connection" in sentence.lower()
    with begun(tmp_path / "service", port=port):
        async with asyncio.timeout(30):
            while "error" in (told := await server("run_backtest", **QUICK)):
                assert told["error"]["code"] == "GRPC_ERROR"
                await asyncio.sleep(0.2)


async def test_a_service_that_is_slow_is_given_up_and_ends_the_work(backtests, service):
    server = await opened(backtests, service.target, deadline_s={"run_backtest": 3})
    await minutes(server)
    code, sentence = await server.refused("run_backtest", **{**ENDLESS, "symbol": "ETH/USD"})
    assert code == "BACKTEST_TIMEOUT"
    assert sentence.startswith("Timeout")
    await until(lambda: not service.workers())


async def test_a_service_that_is_killed_in_the_call(backtests, service):
    server = await opened(backtests, service.target)
    await minutes(server)
    asked = asyncio.create_task(server.refused("run_backtest", **{**ENDLESS, "symbol": "ETH/USD"}))
    await until(service.workers)
    left = service.workers()
    service.end(signal.SIGKILL)
    code, sentence = await asked
    assert code == "GRPC_ERROR"
    assert "connection" in sentence.lower()
    for pid in left:
        os.kill(pid, signal.SIGKILL)


async def test_a_worker_of_it_that_is_killed_in_the_call(backtests, service):
    server = await opened(backtests, service.target)
    await minutes(server)
    asked = asyncio.create_task(server.refused("run_backtest", **{**ENDLESS, "symbol": "ETH/USD"}))
    await until(service.workers)
    for pid in service.workers():
        os.kill(pid, signal.SIGKILL)
    assert (await asked)[0] == "GRPC_ERROR"
    assert "data" in await server("run_backtest", **QUICK)


async def test_a_service_that_is_full(backtests, service):
    server = await opened(backtests, service.target)
    await minutes(server)
    asked = asyncio.create_task(server.refused("run_backtest", **{**ENDLESS, "symbol": "ETH/USD"}))
    await until(service.workers)
    code, sentence = await server.refused("run_backtest", **QUICK)
    assert code == "GRPC_ERROR"
    assert "try again" in sentence
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    assert server.app.runtime.source(Backtester).source == "grpc"


async def test_what_no_service_is_needed_for_is_told_as_ever(backtests):
    server = await opened(backtests, f"127.0.0.1:{free_port()}")
    for said, code in (
        ({"strategy_id": "NOBODY"}, "STRATEGY_NOT_FOUND"), ({"symbol": "???"}, "INVALID_SYMBOL"),
        ({"start_date": "2026-02-30"}, "INVALID_DATE_RANGE"), ({"symbol": "ETH/USD"}, "INSUFFICIENT_DATA"),
    ):  # fmt: skip
        assert (await server.refused("run_backtest", **{**QUICK, **said}))[0] == code


async def test_postgresql_has_the_strategies_and_a_service_runs_them(backtests, service, database):
    server = await opened(backtests, service.target, **database)
    told = await server("run_backtest", **QUICK)
    assert told["data"]["trades"] > 0
