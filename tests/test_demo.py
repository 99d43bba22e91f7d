"""The demo world: deterministic, at the present, and never fallen into."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from quantdeck.connections.sqlite import SQLite
from quantdeck.demo import AHEAD, extend, make
from quantdeck.demo.world import SILENT_SINCE, STALE_SYMBOL, World
from quantdeck.settings import MisconfiguredError, Settings

CLOCK = datetime(2026, 6, 1, tzinfo=UTC)
SIGNALS = "SELECT signal_id, action, strength, signal_timestamp FROM implementation_signals ORDER BY signal_id"


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
    early = {row["signal_id"]: row for row in world.signals(CLOCK, CLOCK + timedelta(days=3))}
    late = {row["signal_id"]: row for row in world.signals(CLOCK + timedelta(days=1), CLOCK + timedelta(days=4))}
    assert early.keys() & late.keys()
    assert all(early[key] == late[key] for key in early.keys() & late.keys())


async def test_it_is_lived_in_up_to_the_clock_and_written_ahead_of_it(settings):
    await make(settings, seed=7, days=5)
    times = [row["signal_timestamp"] for row in await rows(settings, SIGNALS)]
    recent = [at for at in times if at > SILENT_SINCE]
    assert min(recent) < CLOCK - timedelta(days=4)
    assert max(recent) > CLOCK + AHEAD - timedelta(days=1)


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
    expected = {row["signal_id"] for row in world.signals(CLOCK + AHEAD, later + AHEAD)}
    assert len(after) > before
    assert expected <= {row["signal_id"] for row in after}


async def test_a_home_with_real_data_is_never_made_a_demo(settings):
    settings.home_path.mkdir()
    real = SQLite(settings.home_path / "desk.db", groups=("desk",))
    await real.ping()
    await real.close()
    with pytest.raises(MisconfiguredError, match="not a demo world"):
        await make(settings, seed=7, days=1)
    assert not settings.is_demo


async def test_a_demo_and_a_real_database_are_never_served_together(settings):
    from quantdeck.app import open_app
    from quantdeck.servers import load

    await make(settings, seed=7, days=1)
    both = settings.model_copy(update={"database": Settings.read({"DATABASE_URL": "postgresql://db/x"}).database})
    with pytest.raises(MisconfiguredError, match="demo world"):
        async with open_app(both, (load("strategy-mcp"),)):
            pass
    with pytest.raises(MisconfiguredError, match="real database"):
        await make(both, seed=7, days=1)
