"""run_backtest while it runs: what its client hears, and that nothing goes on when nobody waits any more."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE
from contextlib import suppress
from typing import Any

import orjson
import pytest

from quantdeck.app import open_app
from quantdeck.core.errors import Unreachable
from quantdeck.domain.timeframes import MINUTE
from quantdeck.servers import load
from quantdeck.settings import Backtests, Settings
from quantdeck.sources.backtester import Backtester, TookTooLong
from quantdeck.sources.candles import Candles
from tests.servers.backtest_mcp.conftest import NOON_S, add_strategies, fill, hours
from tests.servers.conftest import ERAS
from tests.support.bars import every, walk
from tests.support.desk import NOON, uid
from tests.support.over_http import ENVELOPE, body_of, call, served
from tests.support.program import PROGRAM

LEGACY = pytest.mark.parametrize("era", ["legacy"], indirect=True)
"""In memory the SDK's client of the other era asks for no progress; over the wire it does."""
QUICK = {"strategy_id": uid("moving"), "symbol": "BTC/USD"}
ENDLESS = {"strategy_id": "SLOW", "symbol": "BTC/USD", "timeframe": "1m"}


async def minutes(server: Any) -> None:
    opens = every(60, NOON_S - 91 * 86_400, 91 * 1440)
    await server.app.runtime.source(Candles).write("BTC/USD", MINUTE, walk(opens))


def running(server: Any) -> set[int]:
    """The processes that work on backtests."""
    found: set[int] = server.app.runtime.source(Backtester).running
    return found


async def until(server: Any, there: bool) -> None:
    """Wait for a process to be there, or for all to be gone; neither tells anybody."""
    async with asyncio.timeout(20):
        while bool(running(server)) is not there:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


class Heard:
    """What a client is told of a call's progress."""

    def __init__(self) -> None:
        self.told: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, done: float, total: float | None, message: str | None) -> None:
        self.told.append((done, total, message))


@LEGACY
async def test_progress_ascends_to_all_of_it(backtests):
    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    heard = Heard()
    await server.client.call_tool("run_backtest", QUICK, progress_callback=heard)
    done = [share for share, _, _ in heard.told]
    assert done == sorted(set(done))
    assert {total for _, total, _ in heard.told} == {100}
    assert (heard.told[0][2], done[-1]) == ("2172 bars of 1h read", 100)


@LEGACY
async def test_a_large_one_tells_how_far_it_is(backtests):
    server = await backtests()
    await minutes(server)
    heard = Heard()
    asked = {**QUICK, "strategy_id": "LARGE", "timeframe": "1m"}
    result = await server.client.call_tool("run_backtest", asked, progress_callback=heard)
    assert result.is_error is False, result.content
    done = [share for share, _, _ in heard.told]
    assert done == sorted(set(done))
    assert len(done) > 10
    assert not running(server)


async def test_a_deadline_is_told_by_the_specs_own_code_and_ends_the_work(backtests):
    server = await backtests(deadline_s={"run_backtest": 0.5})
    await minutes(server)
    error = (await server("run_backtest", **ENDLESS))["error"]
    assert error["code"] == "BACKTEST_TIMEOUT"
    assert error["message"].startswith("Timeout")
    assert error["details"] == {"timeout_ms": 500}
    assert not running(server)


async def test_a_call_that_is_cancelled_ends_the_work(backtests):
    server = await backtests()
    await minutes(server)
    asked = asyncio.create_task(server.client.call_tool("run_backtest", ENDLESS))
    await until(server, there=True)
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked
    await until(server, there=False)


async def test_a_process_that_dies_is_the_backtesters_failure(backtests):
    server = await backtests()
    await minutes(server)
    asked = asyncio.create_task(server("run_backtest", **ENDLESS))
    await until(server, there=True)
    (pid,) = running(server)
    os.kill(pid, signal.SIGKILL)
    error = (await asked)["error"]
    assert error["code"] == "GRPC_ERROR"
    assert "ended before it had a result" in error["message"]


@pytest.mark.parametrize("failure, code", [(Unreachable("No connection", source="grpc"), "GRPC_ERROR"),
                                           (TimeoutError(), "BACKTEST_TIMEOUT"),
                                           (TookTooLong("Timeout", source="grpc"), "BACKTEST_TIMEOUT")],
                         ids=["down", "gave up", "too long"])  # fmt: skip
async def test_a_service_that_is_down_or_gives_up_has_its_code(backtests, failure, code):
    class Away(Backtester):
        source = "grpc"

        async def _run(self, job: Any, tell: Any) -> Any:
            raise failure

    server = await backtests()
    await fill(server, "BTC/USD", hours(3000))
    source, away = server.app.runtime.source, Away()
    server.app.runtime.source = lambda kind: away if kind is Backtester else source(kind)
    assert (await server.refused("run_backtest", **QUICK))[0] == code


@pytest.fixture
async def over_http(tmp_path):
    """The server over HTTP, with 91 days of minutes."""
    async with served(
        tmp_path / "home", make=lambda _: (load("backtest-mcp"),), migrated=True, clock=NOON.isoformat()
    ) as opened:
        await add_strategies(opened.app.databases.of("desk"))
        await minutes(opened)
        yield opened


@pytest.mark.parametrize("protocol", ERAS)
async def test_progress_is_told_over_http(over_http, protocol):
    heard = Heard()
    async with over_http.client(protocol) as client:
        result = await client.call_tool("run_backtest", QUICK, progress_callback=heard)
    assert result.is_error is False
    assert [done for done, _, _ in heard.told] == [10, 100]


async def test_a_cancellation_over_http_ends_the_work(over_http):
    session = await over_http.session()
    asked = asyncio.create_task(session.post(call("run_backtest", 7, None, **ENDLESS)))
    await until(over_http, there=True)
    await session.cancel(7)
    assert body_of(await asked)["error"]["code"] == -32800
    await until(over_http, there=False)


async def test_a_client_over_http_that_goes_away_ends_the_work(over_http):
    asked = asyncio.create_task(over_http.modern("run_backtest", **ENDLESS))
    await until(over_http, there=True)
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked
    await until(over_http, there=False)


async def test_a_plain_request_is_answered_with_the_status_of_the_table(over_http):
    told = await over_http.rest("run_backtest", arguments=QUICK)
    assert (told.status_code, told.json()["data"]["timeframe"]) == (200, "1h")
    for arguments, status in (
        ({"strategy_id": "nobody"}, 404), ({"symbol": "?"}, 400), ({"end_date": "x"}, 400), ({"symbol": "X/USD"}, 422),
    ):  # fmt: skip
        assert (await over_http.rest("run_backtest", arguments={**QUICK, **arguments})).status_code == status
    limit = {"run_backtest": 0.5}
    over_http.app.runtime.deadline_s = limit
    assert (await over_http.rest("run_backtest", arguments=ENDLESS)).status_code == 504


@LEGACY
async def test_a_backtest_is_written_into_the_log_that_the_settings_name(backtests, tmp_path, serve):
    path = tmp_path / "home" / "events.db"
    server = await backtests(backtests=Backtests(events=path))
    await fill(server, "BTC/USD", hours(3000))
    heard = Heard()
    result = await server.client.call_tool("run_backtest", QUICK, progress_callback=heard)
    data = orjson.loads(result.content[0].text)["data"]
    assert [message for _, _, message in heard.told][-2:] == ["writing the run", "done"]
    log = await serve("backtest-events")
    (run,) = (await log("list_backtest_runs"))["runs"]
    assert (run["id"], run["strategy"]) == (data["run_id"], "MOVING")
    asked = {"runId": run["id"], "eventType": "TradeExecution", "propertyPath": "$.RealizedPnL"}
    fills = (await log("aggregate_metrics", **asked, aggregations=["count", "sum"]))["metadata"]["totalEvents"]
    assert fills in {2 * data["trades"], 2 * data["trades"] + 1}


async def test_a_log_that_cannot_be_written_is_said(backtests, tmp_path):
    (tmp_path / "other").write_text("no log at all" * 500)
    server = await backtests(backtests=Backtests(events=tmp_path / "other"))
    await fill(server, "BTC/USD", hours(3000))
    code, sentence = await server.refused("run_backtest", **QUICK)
    assert code == "DATABASE_ERROR"
    assert "could not be written" in sentence
    assert str(tmp_path) not in sentence


@pytest.fixture
async def world(tmp_path):
    """A home with the strategies and 91 days of minutes."""
    settings = Settings(home=tmp_path / "home", clock=NOON.isoformat())
    async with open_app(settings, (load("backtest-mcp"),)) as app:
        await app.databases.migrate()
        await add_strategies(app.databases.of("desk"))
        await app.runtime.source(Candles).write("BTC/USD", MINUTE, walk(every(60, NOON_S - 91 * 86_400, 91 * 1440)))
    return tmp_path / "home"


@pytest.fixture
async def program(world):
    """The real program, on its pipes."""
    told = {"QUANTDECK_HOME": str(world), "QUANTDECK_CLOCK": NOON.isoformat(), "QUANTDECK_LOG_LEVEL": "error"}
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "serve", "backtest-mcp", stdin=PIPE, stdout=PIPE, env={**os.environ, **told}
    )
    yield process
    if process.returncode is None:
        process.kill()
    await process.communicate(b"")


def say(program: Any, message: dict[str, Any]) -> None:
    program.stdin.write(json.dumps(message).encode() + b"\n")


ON_THE_WIRE = pytest.mark.parametrize("envelope", [{}, ENVELOPE], ids=["legacy", "modern"])


@ON_THE_WIRE
async def test_progress_is_told_over_stdio_before_the_answer(program, envelope):
    say(program, call("run_backtest", 1, {**envelope, "progressToken": "t"}, **QUICK))
    lines = [json.loads(await program.stdout.readline()) for _ in range(3)]
    assert [line["params"]["progress"] for line in lines[:2]] == [10, 100]
    assert lines[2]["result"]["structuredContent"]["data"]["timeframe"] == "1h"


@ON_THE_WIRE
async def test_a_cancellation_over_stdio_ends_the_work_and_the_program_can_end(program, envelope):
    say(program, call("run_backtest", 1, {**envelope, "progressToken": "t"}, **ENDLESS))
    assert json.loads(await program.stdout.readline())["method"] == "notifications/progress"
    say(program, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    out, _ = await program.communicate(b"")
    assert [line for line in out.splitlines() if "progress" not in json.loads(line).get("method", "")] == []
    assert program.returncode == 0
