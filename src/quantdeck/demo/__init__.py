"""The demo world: chosen, never fallen into. `make` marks a home as one and fills it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from quantdeck.connections.database import Database
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.clock import Clock
from quantdeck.demo.world import World
from quantdeck.settings import MisconfiguredError, Settings

__all__ = ["AHEAD", "extend", "keep_current", "make"]

AHEAD = timedelta(days=30)
"""How far signals are written ahead, so that a world is at the present without anything running."""

_TABLES = ("implementation_signals", "strategy_implementations", "strategy_specs")


async def make(settings: Settings, *, seed: int, days: int) -> str:
    """Make the home a demo world, or make it anew; what is in it, in a few words."""
    _refuse_the_real(settings)
    settings.home_path.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings.demo_mark.write_bytes(orjson.dumps({"seed": seed, "days": days}))
    desk = _desk(settings)
    try:
        # where the clock stands still, the world is lived in up to there
        return await _fill(desk, World(seed), days, Clock.parse(settings.clock).now())
    finally:
        await desk.close()


async def keep_current(settings: Settings) -> None:
    """Write signals further ahead, day by day, for as long as a server runs.

    Several processes may do this to one home: each looks again inside its transaction, so one of
    them writes and the others find it done.
    """
    world = World(orjson.loads(settings.demo_mark.read_bytes())["seed"])
    desk = _desk(settings)
    try:
        while True:
            await extend(desk, world, datetime.now(UTC))
            await asyncio.sleep(timedelta(hours=6).total_seconds())
    finally:
        await desk.close()


def _refuse_the_real(settings: Settings) -> None:
    if settings.database.get_secret_value():
        raise MisconfiguredError("QUANTDECK_DATABASE names a real database; unset it to make a demo world")
    if not settings.is_demo and any(settings.home_path.glob("*.db")):
        raise MisconfiguredError(
            f"{settings.home_path} holds data that is not a demo world's; choose another QUANTDECK_HOME for the demo"
        )


def _desk(settings: Settings) -> SQLite:
    return SQLite(settings.home_path / "desk.db", groups=("desk",))


async def _fill(desk: Database, world: World, days: int, now: datetime) -> str:
    specs, implementations = world.specs(), world.implementations()
    signals = [*world.last_words(), *world.signals(now - timedelta(days=days), now + AHEAD)]
    async with desk.transaction():
        for table in _TABLES:
            await desk.execute(f"DELETE FROM {table}")  # noqa: S608 - a literal of this module
        await _insert(desk, "strategy_specs", specs)
        await _insert(desk, "strategy_implementations", implementations)
        await _insert(desk, "implementation_signals", signals)
    return f"{len(specs)} specs, {len(implementations)} implementations, {len(signals)} signals"


async def extend(desk: Database, world: World, now: datetime) -> None:
    """Write signals up to AHEAD of now, where that is a day's worth or more."""
    latest = await _latest(desk)
    if latest > now + AHEAD - timedelta(days=1):
        return
    async with desk.transaction():
        since = await _latest(desk)
        rows = [row for row in world.signals(since, now + AHEAD) if row["signal_timestamp"] > since]
        await _insert(desk, "implementation_signals", rows)


async def _latest(desk: Database) -> datetime:
    row = await desk.row('SELECT max(signal_timestamp) AS "latest [TIMESTAMP]" FROM implementation_signals')
    assert row is not None
    latest: datetime = row["latest"]
    return latest


async def _insert(desk: Database, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = [column for column in rows[0] if not column.startswith("_")]
    places = ", ".join(f":{column}" for column in columns)
    await desk.execute_many(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) ON CONFLICT DO NOTHING",  # noqa: S608 - likewise
        [{column: row[column] for column in columns} for row in rows],
    )
