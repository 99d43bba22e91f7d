"""`quantdeck evaluate` as a person starts it: once, by many at once, killed, and for as long as it runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quantdeck.connections.sqlite import SQLite
from quantdeck.domain.timeframes import TIMEFRAMES
from tests.support.bars import every, walk
from tests.support.candle_stores import KINDS, EmbeddedPlace
from tests.support.desk import add_implementation, add_spec, uid
from tests.support.program import PROGRAM, quantdeck
from tests.support.specs import CROSSING as RULES

HOUR_S = 3600
CLOCK = "2026-03-01T12:00:00Z"
NOW_S = int(datetime.fromisoformat(CLOCK).timestamp())
FOLLOWED = 6


@asynccontextmanager
async def desk(home: Path) -> AsyncIterator[SQLite]:
    database = SQLite(home / "desk.db", groups=("desk",))
    try:
        yield database
    finally:
        await database.close()


async def signals(home: Path) -> list[tuple[str, datetime, str]]:
    async with desk(home) as database:
        rows = await database.rows("SELECT impl_id, signal_timestamp, action FROM implementation_signals ORDER BY 1, 2")
    return [(row["impl_id"], row["signal_timestamp"], row["action"]) for row in rows]


async def made(home: Path, now_s: int, hours: int) -> Path:
    """A real home with some strategies and bars up to an hour, on which they were made long ago."""
    assert quantdeck("migrate", home=home).returncode == 0
    began = datetime.fromtimestamp(now_s, UTC) - timedelta(hours=hours)
    async with desk(home) as database:
        spec_id = await add_spec(database, "CROSS", **RULES, created_at=began, updated_at=began)
        for number in range(FOLLOWED):
            await add_implementation(
                database, f"one {number}", spec_id, parameters={"period": 3 + number}, created_at=began,
                updated_at=began,
            )  # fmt: skip
    await (await KINDS["embedded"].make(home)).fill(
        "BTC/USD", TIMEFRAMES["1h"], walk(every(HOUR_S, now_s - hours * HOUR_S, hours))
    )
    return home


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    return await made(tmp_path / "home", NOW_S, 900)


def evaluate(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return quantdeck("evaluate", *arguments, home=home, environment={"QUANTDECK_CLOCK": CLOCK, **environment})


@contextmanager
def started(home: Path, *arguments: str, clock: str = CLOCK) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "QUANTDECK_HOME": str(home), "QUANTDECK_CLOCK": clock}
    with subprocess.Popen(
        [*PROGRAM, "evaluate", *arguments], env=environment, text=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


async def heard(process: subprocess.Popen[str], words: str) -> str:
    """The next line of its stderr that has these words."""
    assert process.stderr is not None
    while line := await asyncio.wait_for(asyncio.to_thread(process.stderr.readline), 60):
        if words in line:
            return line
    raise AssertionError(f"it ended without a word of {words!r}")


async def test_it_says_what_it_did_and_agents_are_answered_from_it(home):
    told = evaluate(home)
    assert told.returncode == 0, told.stderr
    stored = await signals(home)
    assert f"{FOLLOWED} strategies followed up to {CLOCK}: {len(stored)} new signals" in told.stdout
    assert "BTC/USD: 6 strategies" in told.stderr
    assert ": 0 new signals, 0 weeks" in evaluate(home).stdout
    asked = json.dumps({"symbol": "BTC/USD"})
    answer = quantdeck("call", "get_strategy_consensus", asked, home=home, environment={"QUANTDECK_CLOCK": CLOCK})
    data = json.loads(answer.stdout)["data"]
    day_ago = datetime.fromisoformat(CLOCK) - timedelta(hours=24)
    newest = {impl_id: (at, action) for impl_id, at, action in stored}
    assert min(at for at, _ in newest.values()) >= day_ago
    said = [action for _, action in newest.values()]
    counted = (data["bullish_count"], data["bearish_count"], data["neutral_count"])
    assert counted == (said.count("BUY"), said.count("CLOSE_LONG"), said.count("HOLD"))
    past = json.dumps({"strategy_id": uid("one 0"), "period": "1m"})
    answer = quantdeck("call", "get_historical_performance", past, home=home, environment={"QUANTDECK_CLOCK": CLOCK})
    assert json.loads(answer.stdout)["data"]["environment"] == "PAPER"


async def test_eight_processes_at_once_store_each_signal_once(home, tmp_path):
    alone = await made(tmp_path / "alone", NOW_S, 900)
    assert evaluate(alone).returncode == 0
    told = await asyncio.gather(*(asyncio.to_thread(evaluate, home) for _ in range(8)))
    assert [one.returncode for one in told] == [0] * 8, [one.stderr for one in told]
    new = [int(one.stdout.split(": ")[1].split()[0]) for one in told]
    stored = await signals(home)
    assert sum(new) == len(stored)
    assert stored == await signals(alone)


async def test_one_that_is_killed_leaves_nothing_half_done(home, tmp_path):
    alone = await made(tmp_path / "alone", NOW_S, 900)
    assert evaluate(alone).returncode == 0
    for _ in range(3):
        with started(home) as process:
            async with desk(home) as database:
                while process.poll() is None:
                    (row,) = await database.rows("SELECT count(*) AS followed FROM strategy_evaluations")
                    if row["followed"]:
                        process.kill()
                        break
    assert evaluate(home).returncode == 0
    assert await signals(home) == await signals(alone)


async def test_what_was_traded_can_be_asked_about_in_an_event_log(home):
    log = home / "runs.db"
    assert evaluate(home, "--strategy", uid("one 1"), "--events", str(log)).returncode == 0
    environment = {"QUANTDECK_CLOCK": CLOCK, "QUANTDECK_EVENTS": f"sqlite:///{log}"}

    def asked(tool, **arguments):
        return json.loads(quantdeck("call", tool, json.dumps(arguments), home=home, environment=environment).stdout)

    runs = asked("list_backtest_runs")["runs"]
    assert {run["strategy"] for run in runs} == {"CROSS"}
    counts = [
        asked("aggregate_metrics", runId=run["id"], eventType="TradeExecution", propertyPath="$.Price",
              aggregations=["count"])["aggregations"]["count"]
        for run in runs
    ]  # fmt: skip
    own = [at for impl_id, at, action in await signals(home) if impl_id == uid("one 1") and action != "HOLD"]
    assert (
        len(own) - 1 <= sum(counts) <= len(own) + len(runs)
    )  # the newest is not carried out; an open trade is told again


@pytest.mark.parametrize(
    "arguments, environment, said",
    [
        (("--watch",), {}, "stands still"),
        (("--symbol", "?"), {}, "'?' is neither"),
        ((), {"QUANTDECK_CLOCK": "yesterday"}, "neither `wall` nor an instant"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, arguments, environment, said):
    told = evaluate(tmp_path, *arguments, **environment)
    assert (told.returncode, "Traceback" in told.stderr) == (2, False)
    assert said in told.stderr


def test_a_home_without_a_desk_says_what_to_do(tmp_path):
    told = evaluate(tmp_path)
    assert told.returncode == 2
    assert "quantdeck migrate" in told.stderr


async def test_nothing_to_follow_is_said(tmp_path):
    assert quantdeck("migrate", home=tmp_path).returncode == 0
    told = evaluate(tmp_path)
    assert told.returncode == 0
    assert "there is nothing to follow" in told.stderr


def present_hour() -> int:
    return int(datetime.now(UTC).timestamp()) // HOUR_S * HOUR_S


async def test_a_watch_takes_up_what_another_process_stores_and_ends_cleanly(tmp_path):
    hour_s = present_hour()
    home = await made(tmp_path / "home", hour_s - 100 * HOUR_S, 300)
    with started(home, "--watch", clock="wall") as process:
        assert "0 new" not in await heard(process, "6 strategies followed")
        before = await signals(home)
        bars = walk(every(HOUR_S, hour_s - 100 * HOUR_S, 98), seed=9)
        await EmbeddedPlace(home).fill("BTC/USD", TIMEFRAMES["1h"], bars)
        await heard(process, "6 strategies followed")
        after = await signals(home)
        assert set(before) < set(after)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 30) == 0
    async with desk(home) as database:
        assert await database.rows("SELECT * FROM leases") == []


async def test_of_two_watches_one_works_and_the_other_goes_on_when_it_has_ended(tmp_path):
    hour_s = present_hour()
    home = await made(tmp_path / "home", hour_s - 100 * HOUR_S, 200)
    with started(home, "--watch", clock="wall") as one:
        await heard(one, "strategies followed")
        with started(home, "--watch", clock="wall") as other:
            await heard(other, "another process follows these strategies")
            one.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(one.wait, 30) == 0
            await EmbeddedPlace(home).fill(
                "BTC/USD", TIMEFRAMES["1h"], walk(every(HOUR_S, hour_s - 100 * HOUR_S, 98), seed=9)
            )
            await heard(other, "strategies followed")


async def test_a_watch_goes_on_trying_while_there_are_no_bars(tmp_path):
    hour_s = present_hour()
    home = await made(tmp_path / "home", hour_s - 10 * HOUR_S, 200)
    (home / "market.db").rename(home / "gone.db")
    with started(home, "--watch", clock="wall") as process:
        await heard(process, "Trying again in")
        assert process.poll() is None
        for file in home.glob("gone.db*"):
            file.rename(home / file.name.replace("gone", "market"))
        await heard(process, "6 strategies followed")
