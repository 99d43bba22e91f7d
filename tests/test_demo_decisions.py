"""What the demo's agent decided agrees with what its strategies said, and is at the present."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from quantdeck.app import open_app
from quantdeck.connections.sqlite import SQLite
from quantdeck.demo import AHEAD, extend, extend_decisions, make
from quantdeck.demo.decisions import LOOKS_BACK, decisions
from quantdeck.demo.following import followed
from quantdeck.demo.world import SILENT_SINCE, STALE_SYMBOL, SYMBOLS, World
from quantdeck.servers import load
from quantdeck.settings import Settings

CLOCK = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ALL = "SELECT decision_id, symbol, action, tool_calls, created_at FROM agent_decisions ORDER BY created_at, seq"


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=tmp_path / "world", clock=CLOCK.isoformat())


@pytest.fixture
async def diary(settings):
    """Of a world that is lived in for five days."""
    await make(settings, seed=7, days=5)
    database = SQLite(settings.home_path / "decisions.db", groups=("decisions",))
    yield database
    await database.close()


def decided(world: World, since: datetime, until: datetime) -> dict[str, object]:
    rows = decisions(world, followed(world, since - LOOKS_BACK, until).signals, since, until)
    return {row["decision_id"]: row for row in rows}


def test_two_worlds_of_one_seed_decide_the_same_wherever_they_overlap():
    early, late = (decided(World(7), CLOCK + DAY * first, CLOCK + DAY * (first + 3)) for first in (0, 1))
    both = early.keys() & late.keys()
    most = 2 * 6 * (len(SYMBOLS) - 1)  # one that nobody has spoken of for a day is not decided on
    assert 0.8 * most < len(both) <= most
    assert all(early[key] == late[key] for key in both)
    assert not early.keys() & decided(World(8), CLOCK, CLOCK + DAY).keys()


async def call(app, tool, key=None, **arguments):
    return orjson.loads((await app.call(app.tool(tool), arguments, idempotency_key=key)).encoded)["data"]


async def test_each_decision_is_what_the_strategies_said_when_it_was_made(settings, diary):
    rows = await diary.rows(ALL)
    gone = [row for row in rows if row["symbol"] == STALE_SYMBOL]
    for row in (*gone[:2], *gone[-1:], *rows[12::40]):
        (asked,) = row["tool_calls"]["calls"]
        then = settings.model_copy(update={"clock": row["created_at"].isoformat()})
        async with open_app(then, (load("strategy-mcp"),)) as app:
            assert await call(app, asked["tool"], **asked["parameters"]) == asked["result"]
        leaning = asked["result"]["consensus"].removeprefix("STRONG_")
        assert row["action"] == {"NEUTRAL": "HOLD"}.get(leaning, leaning)


async def test_it_has_decided_up_to_the_clock_and_what_comes_is_not_told(settings, diary):
    async with open_app(settings, (load("decisions-mcp"),)) as app:
        told = await call(app, "get_recent_decisions", limit=100)
        written = len(await diary.rows(ALL))
    assert CLOCK - timedelta(hours=5) < datetime.fromisoformat(told["items"][0]["created_at"]) <= CLOCK
    assert told["pagination"]["total"] < written
    assert (await diary.rows(ALL))[-1]["created_at"] > CLOCK + AHEAD - DAY


async def test_nothing_is_decided_on_a_symbol_whose_strategies_are_silent(diary):
    of_stale = [row["created_at"] for row in await diary.rows(ALL) if row["symbol"] == STALE_SYMBOL]
    assert SILENT_SINCE < max(of_stale) <= SILENT_SINCE + DAY


async def test_running_servers_decide_on_and_several_at_once_do_it_once(settings, diary):
    world, later = World(7), CLOCK + 10 * DAY
    desk, other = (SQLite(settings.home_path / f"{name}.db") for name in ("desk", "decisions"))
    before = await diary.rows(ALL)
    try:
        await extend(desk, world, later)
        for one in (diary, other, diary):
            await extend_decisions(one, world, later)
    finally:
        await desk.close()
        await other.close()
    after = {row["decision_id"] for row in await diary.rows(ALL)}
    expected = decided(world, CLOCK + AHEAD + DAY, later + AHEAD).keys()
    assert after - {row["decision_id"] for row in before} >= expected
    assert after >= {row["decision_id"] for row in before}
    assert len(after) == len(await diary.rows(ALL))


async def test_a_world_in_which_nothing_is_decided_is_decided_on_from_now(diary):
    await diary.execute("DELETE FROM agent_decisions")
    await extend_decisions(diary, World(7), CLOCK)
    first = (await diary.rows(ALL))[0]["created_at"]
    assert CLOCK < first < CLOCK + timedelta(hours=5)


async def test_a_world_that_is_made_anew_has_forgotten_what_was_saved_in_it_and_under_which_key(settings, diary):
    said = {"symbol": "BTC/USD", "action": "BUY", "confidence": 1, "reasoning": "why"}
    ids = []
    for _ in range(2):
        async with open_app(settings, (load("decisions-mcp"),)) as app:
            ids.append((await call(app, "save_decision", key="k", **said))["decision_id"])
            assert (await call(app, "get_recent_decisions"))["items"][0]["decision_id"] == ids[-1]
        await make(settings, seed=7, days=5)
    assert ids[0] != ids[1]
    assert not {row["decision_id"] for row in await diary.rows(ALL)} & set(ids)
