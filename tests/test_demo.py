"""The demo world: deterministic, at the present, and never fallen into."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from quantdeck.app import open_app
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.errors import QueryFailed
from quantdeck.demo import AHEAD, extend, make
from quantdeck.demo.book import MARKED, OVERWEIGHT, UNCOVERED, Book
from quantdeck.demo.following import followed
from quantdeck.demo.world import SILENT_SINCE, STALE_SYMBOL, World
from quantdeck.domain.spec_reader import read
from quantdeck.servers import load
from quantdeck.settings import MisconfiguredError, Settings
from tests.support.program import PROGRAM, quantdeck

CLOCK = datetime(2026, 6, 1, tzinfo=UTC)
SIGNALS = "SELECT signal_id, action, strength, signal_timestamp FROM implementation_signals ORDER BY signal_id"
LISTS = ("indicators", "entry_conditions", "exit_conditions", "parameters")


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=tmp_path / "world", clock=CLOCK.isoformat())


async def rows(settings: Settings, sql: str):
    database = SQLite(settings.home_path / "desk.db", groups=("desk",))
    try:
        return await database.rows(sql)
    finally:
        await database.close()


async def test_the_same_seed_is_the_same_world(tmp_path):
    homes = [Settings(home=tmp_path / name, clock=CLOCK.isoformat()) for name in ("one", "two")]
    for home in homes:
        await make(home, seed=3, days=5)
    one, two = [await rows(home, SIGNALS) for home in homes]
    assert one == two
    await make(homes[1], seed=4, days=5)
    assert await rows(homes[1], SIGNALS) != one


def test_two_worlds_of_one_seed_agree_wherever_they_overlap():
    world = World(7)
    early = {row["signal_id"]: row for row in followed(world, CLOCK, CLOCK + timedelta(days=3)).signals}
    late = {
        row["signal_id"]: row for row in followed(world, CLOCK + timedelta(days=1), CLOCK + timedelta(days=4)).signals
    }
    assert early.keys() & late.keys()
    assert all(early[key] == late[key] for key in early.keys() & late.keys())


def test_a_signal_becomes_known_only_after_it_was_given():
    world = World(7)
    known_at = {row["impl_id"]: row["created_at"] for row in world.implementations()}
    for signal in followed(world, CLOCK, CLOCK + timedelta(days=2)).signals:
        assert known_at[signal["impl_id"]] <= signal["signal_timestamp"] < signal["created_at"]


async def test_it_is_lived_in_up_to_the_clock_and_written_ahead_of_it(settings):
    await make(settings, seed=7, days=5)
    times = [row["signal_timestamp"] for row in await rows(settings, SIGNALS)]
    recent = [at for at in times if at > SILENT_SINCE]
    assert min(recent) < CLOCK - timedelta(days=4)
    assert max(recent) > CLOCK + AHEAD - timedelta(days=1)


async def test_a_world_that_has_not_begun_at_the_clock_says_so(settings):
    early = settings.model_copy(update={"clock": "2024-03-01T14:30:00Z"})
    said = await make(early, seed=7, days=1)
    assert "at 2024-03-01T14:30:00Z, where the clock stands: they come after 2025-01-06" in said
    assert "clock" not in await make(settings, seed=7, days=1)


async def test_the_stale_symbol_has_spoken_but_long_ago(settings):
    await make(settings, seed=7, days=5)
    found = await rows(
        settings,
        'SELECT max(signal_timestamp) AS "latest [TIMESTAMP]" FROM implementation_signals'
        f" WHERE symbol = '{STALE_SYMBOL}'",
    )
    assert SILENT_SINCE - timedelta(days=1) < found[0]["latest"] < SILENT_SINCE


async def test_running_servers_write_on_and_several_at_once_do_it_once(settings):
    await make(settings, seed=7, days=2)
    world, later = World(7), CLOCK + timedelta(days=10)
    desks = [SQLite(settings.home_path / "desk.db", groups=("desk",)) for _ in range(2)]
    try:
        before = len(await desks[0].rows(SIGNALS))
        for desk in desks:
            await extend(desk, world, later)
        after = await desks[0].rows(SIGNALS)
    finally:
        for desk in desks:
            await desk.close()
    expected = {row["signal_id"] for row in followed(world, CLOCK + AHEAD, later + AHEAD).signals}
    assert len(after) > before
    assert expected <= {row["signal_id"] for row in after}


async def test_a_world_without_a_signal_is_written_on_from_now(settings):
    await make(settings, seed=7, days=1)
    desk = SQLite(settings.home_path / "desk.db")
    try:
        for table in ("implementation_signals", "strategy_evaluations"):
            await desk.execute(f"DELETE FROM {table}")
        await extend(desk, World(7), CLOCK)
        (row,) = await desk.rows('SELECT min(signal_timestamp) AS "first [TIMESTAMP]" FROM implementation_signals')
    finally:
        await desk.close()
    assert CLOCK < row["first"] < CLOCK + timedelta(days=1)


async def test_a_world_of_another_seed_is_not_written_into(settings):
    await make(settings, seed=8, days=1)
    desk = SQLite(settings.home_path / "desk.db")
    before = await rows(settings, SIGNALS)
    try:
        with pytest.raises(QueryFailed):
            await extend(desk, World(7), CLOCK + timedelta(days=10))
    finally:
        await desk.close()
    assert await rows(settings, SIGNALS) == before


async def asked(app, tool: str, **arguments):
    return orjson.loads((await app.call(app.tool(tool), arguments)).encoded)


async def test_the_portfolio_agrees_with_itself_and_has_its_planted_anomalies(settings):
    await make(settings, seed=7, days=1)
    async with open_app(settings, (load("portfolio-mcp"),)) as app:
        balance, held = [(await asked(app, tool))["data"] for tool in ("get_balance", "get_positions")]
        items = {item["symbol"]: item for item in held["items"]}
        assert balance["total_balance"] == pytest.approx(balance["available_balance"] + balance["margin_used"])
        cost = sum(item["size"] * item["entry_price"] for item in items.values())
        assert balance["margin_used"] == pytest.approx(cost)
        assert balance["unrealized_pnl"] == pytest.approx(sum(item["unrealized_pnl"] for item in items.values()))
        for symbol, more, less in ((OVERWEIGHT, "BUY", "SELL"), (UNCOVERED, "SELL", "BUY")):
            trade = {"symbol": symbol, "size": items[symbol]["size"]}
            added = (await asked(app, "validate_trade", side=more, **trade))["data"]
            closed = (await asked(app, "validate_trade", side=less, **trade))["data"]
            assert (added["valid"], added["max_size"]) == (False, 0)
            assert (closed["valid"], closed["risk_score"]) == (True, 0)
        assert (await asked(app, "validate_trade", symbol="BTC/USD", side="BUY", size=0.01))["data"]["valid"]


async def test_positions_were_opened_and_stand_at_the_prices_of_the_market(settings):
    await make(settings, seed=7, days=1)
    for position in await rows(settings, "SELECT * FROM positions WHERE symbol <> 'XAU/USD'"):  # its feed is behind
        for at, price in (
            (position["opened_at"], position["entry_price"]),
            (position["closed_at"] or MARKED, position["current_price"]),
        ):
            then = settings.model_copy(update={"clock": at.isoformat()})
            async with open_app(then, (load("market-data-mcp"),)) as app:
                told = await asked(app, "get_current_price", symbol=position["symbol"])
                assert told["data"]["price"] == price, position["symbol"]


@pytest.mark.parametrize("seed", [*range(12), 2**40])
def test_in_every_world_the_account_could_pay_and_the_anomalies_are_there(seed):
    book = Book(World(seed))
    (account,), (limits, _) = book.accounts(), book.risk_limits()
    assert account["available_balance"] > 0.1 * account["total_balance"]
    held = {row["symbol"]: row["size"] * row["current_price"] for row in book.positions() if row["closed_at"] is None}
    most = limits["max_position_pct"] * account["total_balance"]
    assert [symbol for symbol, value in held.items() if value > most] == [OVERWEIGHT]
    assert sum(held.values()) < limits["max_exposure_pct"] * account["total_balance"]


async def test_the_portfolio_is_refused_to_a_clock_before_it_was_written(settings):
    await make(settings, seed=7, days=1)
    before = settings.model_copy(update={"clock": (MARKED - timedelta(seconds=1)).isoformat()})
    async with open_app(before, (load("portfolio-mcp"),)) as app:
        assert (await asked(app, "get_balance"))["error"]["code"] == "NOT_FOUND"


async def test_a_world_made_anew_has_one_portfolio_that_of_its_seed(settings):
    await make(settings, seed=7, days=1)
    one = await rows(settings, "SELECT * FROM positions ORDER BY opened_at")
    await make(settings, seed=8, days=1)
    other = await rows(settings, "SELECT * FROM positions ORDER BY opened_at")
    assert [row["symbol"] for row in one] == [row["symbol"] for row in other]
    assert {row["position_id"] for row in one}.isdisjoint(row["position_id"] for row in other)
    assert [row["entry_price"] for row in one] != [row["entry_price"] for row in other]


async def ask(app):
    answer = await app.call(app.tool("get_top_strategies"), {"symbol": "BTC/USD", "force_refresh": True})
    return orjson.loads(answer.encoded)


async def strategies(app) -> set[str]:
    body = await ask(app)
    return set() if "error" in body else {item["strategy_id"] for item in body["data"]["items"]}


@pytest.mark.parametrize("removed", [False, True])
async def test_a_running_server_answers_from_the_world_that_was_made_anew(settings, removed):
    await make(settings, seed=7, days=1)
    async with open_app(settings, (load("strategy-mcp"),)) as app:
        before = await strategies(app)
        if removed:
            shutil.rmtree(settings.home_path)
            assert [await strategies(app) for _ in range(2)] == [set(), set()]
            assert [health.status for health in await app.health()] == ["unhealthy"]
        await make(settings, seed=8, days=1)
        after = await strategies(app)
    ours = [{row["impl_id"] for row in World(seed).implementations()} for seed in (7, 8)]
    assert (before <= ours[0], after <= ours[1], bool(before and after)) == (True, True, True)


def _making(settings: Settings, seed: int) -> subprocess.Popen[bytes]:
    """A process that has begun to make a large world."""
    environment = {**os.environ, "QUANTDECK_HOME": str(settings.home_path), "QUANTDECK_CLOCK": settings.clock}
    process = subprocess.Popen([*PROGRAM, "demo", "--seed", str(seed), "--days", "500"], env=environment)
    mark = settings.unfinished_demo_mark
    while not (mark.exists() and mark.read_bytes()):
        assert process.poll() is None
    return process


@pytest.mark.parametrize("before", [None, 7], ids=["a new home", "a world that was there"])
async def test_a_making_that_is_killed_is_told_and_can_be_repeated(settings, before):
    if before is not None:
        await make(settings, seed=before, days=1)
    process = await asyncio.to_thread(_making, settings, 8)
    with pytest.raises(MisconfiguredError, match="by another process"):
        await make(settings, seed=9, days=1)
    process.kill()
    process.wait()
    assert (settings.is_demo, settings.is_unfinished_demo) == (True, True)
    async with open_app(settings, (load("strategy-mcp"),)) as app:
        error = (await ask(app))["error"]
        assert error["code"] == "DATABASE_ERROR"
        assert "run `quantdeck demo` again" in error["message"]
        await make(settings, seed=9, days=1)
        assert await strategies(app) <= {row["impl_id"] for row in World(9).implementations()}
    assert orjson.loads(settings.demo_mark.read_bytes()) == {"seed": 9, "days": 1}
    assert not settings.is_unfinished_demo


@pytest.mark.parametrize("place", ["a file", "a file/home"])
async def test_a_home_that_cannot_be_made_is_one_sentence(tmp_path, place):
    (tmp_path / "a file").write_text("in the way")
    with pytest.raises(MisconfiguredError, match="cannot be made a demo world"):
        await make(Settings(home=tmp_path / place), seed=7, days=1)


@pytest.mark.parametrize(
    "arguments, environment",
    [
        (("--days", "-1"), {}),
        (("--days", "3651"), {}),
        (("--seed", str(2**63)), {}),
        (("--seed", "-1"), {}),
        (("--seed", "x"), {}),
        ((), {"QUANTDECK_CLOCK": "yesterday"}),
        ((), {"QUANTDECK_DATABASE": "postgresql://db/x"}),
    ],
)
def test_what_cannot_be_made_leaves_no_mark(tmp_path, arguments, environment):
    done = quantdeck("demo", *arguments, home=tmp_path / "home", environment=environment)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert not (tmp_path / "home").exists()


async def test_a_home_with_real_data_is_never_made_a_demo(settings):
    settings.home_path.mkdir()
    real = SQLite(settings.home_path / "desk.db", groups=("desk",))
    await real.ping()
    await real.close()
    with pytest.raises(MisconfiguredError, match="not a demo world"):
        await make(settings, seed=7, days=1)
    assert not settings.is_demo


async def test_a_demo_and_a_real_database_are_never_served_together(settings):
    await make(settings, seed=7, days=1)
    both = settings.model_copy(update={"database": Settings.read({"DATABASE_URL": "postgresql://db/x"}).database})
    with pytest.raises(MisconfiguredError, match="demo world"):
        async with open_app(both, (load("strategy-mcp"),)):
            pass
    with pytest.raises(MisconfiguredError, match="real database"):
        await make(both, seed=7, days=1)


@pytest.mark.parametrize("linked", [False, True])
async def test_a_demo_worlds_file_is_not_served_as_a_real_database(settings, tmp_path, linked):
    await make(settings, seed=7, days=1)
    file = settings.home_path / "desk.db"
    if linked:
        (tmp_path / "link.db").symlink_to(file)
        file = tmp_path / "link.db"
    real = Settings.read({"QUANTDECK_HOME": str(tmp_path / "real"), "QUANTDECK_DATABASE": f"sqlite:///{file}"})
    with pytest.raises(MisconfiguredError, match="a file of a demo world"):
        async with open_app(real, (load("strategy-mcp"),)):
            pass


def test_every_spec_of_the_world_can_be_run_with_the_numbers_of_its_implementations():
    world = World(7)
    read_specs = {
        row["spec_id"]: read(**{part: row[part] for part in ("name", "description", *LISTS)}) for row in world.specs()
    }
    assert all(reading.spec is not None for reading in read_specs.values())
    for row in world.implementations():
        made = read_specs[row["spec_id"]].spec
        assert made is not None
        assert made.instantiate(row["parameters"]).computations
        assert row["parameters"].keys() == {one.name for one in made.parameters}
        assert all(one.min <= row["parameters"][one.name] <= one.max for one in made.parameters)
