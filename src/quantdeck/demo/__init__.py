"""The demo world: chosen, never fallen into. `make` marks a home as one and fills it."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from quantdeck.connections.database import Database
from quantdeck.connections.databases import Databases
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.clock import Clock, iso
from quantdeck.demo.book import Book
from quantdeck.demo.decisions import AGENT, LOOKS_BACK, decisions
from quantdeck.demo.performance import performance
from quantdeck.demo.runs import write_runs
from quantdeck.demo.world import BEGAN, SILENT_SINCE, STALE_SYMBOL, World
from quantdeck.domain.consensus import CURRENT_FOR
from quantdeck.settings import MisconfiguredError, Settings

__all__ = ["AHEAD", "extend", "extend_decisions", "extend_performance", "keep_current", "make"]

AHEAD = timedelta(days=30)
"""How far signals are written ahead, so that a world is at the present without anything running."""

MEASURED = timedelta(days=366)
"""How far back it is told how strategies did: the longest period that a tool can be asked for."""

_TABLES = (
    "strategy_performance", "implementation_signals", "strategy_implementations", "strategy_specs",
    "positions", "risk_limits", "accounts",
)  # fmt: skip


async def make(settings: Settings, *, seed: int, days: int) -> str:
    """Make the home a demo world, or make it anew; what is in it, in a few words.

    Until everything is written the home is marked as unfinished and is not served. Who breaks this off at any point
    makes it again.
    """
    now = Clock.parse(settings.clock).now()  # where the clock stands still, the world is lived in up to there
    _refuse_the_real(settings)
    with _unfinished(settings, orjson.dumps({"seed": seed, "days": days})):
        desk = SQLite(settings.home_path / "desk.db", groups=("desk",))
        diary = SQLite(settings.home_path / "decisions.db", groups=("journal", "decisions"))
        try:
            made = await _fill(desk, World(seed), days, now)
            decided = await _fill_decisions(diary, World(seed), days, now)
            return f"{decided}, {made}, {write_runs(settings.home_path / 'events.db', World(seed))}"
        finally:
            await desk.close()
            await diary.close()


@contextmanager
def _unfinished(settings: Settings, text: bytes) -> Iterator[None]:
    """Mark the home as unfinished while this is entered, and as a demo world when it was left well."""
    mark = settings.unfinished_demo_mark
    try:
        settings.home_path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with mark.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a process that is killed lets go of it
            os.truncate(file.fileno(), 0)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # or a power cut could leave a finished world with an empty mark
            yield
            mark.replace(settings.demo_mark)
    except BlockingIOError as error:
        raise MisconfiguredError(f"{settings.home_path} is being made a demo world by another process") from error
    except OSError as error:
        raise MisconfiguredError(f"{settings.home_path} cannot be made a demo world: {error.strerror}") from error


async def keep_current(settings: Settings) -> None:
    """Write signals further ahead, day by day, for as long as a server runs.

    Several processes may do this to one home: each looks again inside its transaction, so one of
    them writes and the others find it done. A world that was made anew meanwhile goes on as what it is now.
    """
    databases = Databases(settings)
    try:
        while True:
            if (world := _marked(settings)) is not None:
                await extend(databases.of("desk"), world, datetime.now(UTC))
                await extend_decisions(databases.of("decisions"), world, datetime.now(UTC))
                await extend_performance(databases.of("desk"), world, datetime.now(UTC))
            await asyncio.sleep(timedelta(hours=6).total_seconds())
    finally:
        await databases.close()


def _marked(settings: Settings) -> World | None:
    """The world of this home; None while it is being made, or where there is none any more."""
    if settings.is_unfinished_demo or not settings.is_demo:
        return None
    return World(orjson.loads(settings.demo_mark.read_bytes())["seed"])


def _refuse_the_real(settings: Settings) -> None:
    if settings.database.get_secret_value():
        raise MisconfiguredError("QUANTDECK_DATABASE names a real database; unset it to make a demo world")
    if not settings.is_demo and any(settings.home_path.glob("*.db")):
        raise MisconfiguredError(
            f"{settings.home_path} holds data that is not a demo world's; choose another QUANTDECK_HOME for the demo"
        )


async def _fill(desk: Database, world: World, days: int, now: datetime) -> str:
    specs, implementations, book = world.specs(), world.implementations(), Book(world)
    signals = [*world.last_words(), *world.signals(now - timedelta(days=days), now + AHEAD)]
    weeks = await asyncio.to_thread(performance, world, now - MEASURED, now + AHEAD)
    async with desk.transaction():
        for table in _TABLES:
            await desk.execute(f"DELETE FROM {table}")  # noqa: S608 - a literal of this module
        await _insert(desk, "strategy_specs", specs)
        await _insert(desk, "strategy_implementations", implementations)
        await _insert(desk, "implementation_signals", signals)
        await _insert(desk, "strategy_performance", weeks)
        await _insert(desk, "accounts", book.accounts())
        await _insert(desk, "risk_limits", book.risk_limits())
        await _insert(desk, "positions", book.positions())
    made = f"{len(specs)} specs, {len(implementations)} implementations, {len(signals)} signals, an account"
    if any(strategy["created_at"] <= now for strategy in implementations):
        return made
    return f"{made}. Nobody knows any of them at {iso(now)}, where the clock stands: they come after {BEGAN:%Y-%m-%d}"


async def _fill_decisions(diary: Database, world: World, days: int, now: datetime) -> str:
    """Of the days whose signals are in this world; with them those with which the stale symbol fell silent."""
    began = SILENT_SINCE - timedelta(days=2)  # as its last words
    rows = [row for row in _decided(world, began, SILENT_SINCE + CURRENT_FOR) if row["symbol"] == STALE_SYMBOL]
    rows += _decided(world, now - timedelta(days=days), now + AHEAD)
    async with diary.transaction():
        for table in ("agent_decisions", "idempotency_keys"):  # a key would answer for a decision that is gone
            await diary.execute(f"DELETE FROM {table}")  # noqa: S608 - a literal of this module
        await _insert(diary, "agent_decisions", rows)
    return f"{len(rows)} decisions"


def _decided(world: World, since: datetime, until: datetime) -> list[dict[str, Any]]:
    """What follows from the signals between two instants alone."""
    return list(decisions(world, world.signals(since, until), since + LOOKS_BACK, until))


async def extend(desk: Database, world: World, now: datetime) -> None:
    """Write signals up to AHEAD of now, where that is a day's worth or more."""
    if await _latest(desk, now) > now + AHEAD - timedelta(days=1):
        return
    async with desk.transaction():
        since = await _latest(desk, now)
        rows = [row for row in world.signals(since, now + AHEAD) if row["signal_timestamp"] > since]
        await _insert(desk, "implementation_signals", rows)


async def extend_decisions(diary: Database, world: World, now: datetime) -> None:
    """The same for what the agent will decide."""
    if await _last_decided(diary, now) > now + AHEAD - timedelta(days=1):
        return
    async with diary.transaction():
        since = await _last_decided(diary, now)
        rows = _decided(world, since - 2 * LOOKS_BACK, now + AHEAD)
        await _insert(diary, "agent_decisions", [row for row in rows if row["created_at"] > since])


async def extend_performance(desk: Database, world: World, now: datetime) -> None:
    """The same for how strategies do. What two processes write is the same, so neither needs to look again."""
    row = await desk.row('SELECT max(period_end) AS "latest [TIMESTAMP]" FROM strategy_performance')
    assert row is not None
    since: datetime = row["latest"] or now - MEASURED
    if since > now + AHEAD - timedelta(days=8):
        return
    weeks = await asyncio.to_thread(performance, world, since, now + AHEAD)
    async with desk.transaction():
        await _insert(desk, "strategy_performance", weeks)


async def _last_decided(diary: Database, now: datetime) -> datetime:
    row = await diary.row(
        'SELECT max(created_at) AS "latest [TIMESTAMP]" FROM agent_decisions WHERE caller = :agent', agent=AGENT
    )
    assert row is not None
    latest: datetime | None = row["latest"]
    return latest or now


async def _latest(desk: Database, now: datetime) -> datetime:
    """When the last signal is due; now, where there is none."""
    row = await desk.row('SELECT max(signal_timestamp) AS "latest [TIMESTAMP]" FROM implementation_signals')
    assert row is not None
    latest: datetime | None = row["latest"]
    return latest or now


async def _insert(desk: Database, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = [column for column in rows[0] if not column.startswith("_")]
    places = ", ".join(f":{column}" for column in columns)
    await desk.execute_many(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) ON CONFLICT DO NOTHING",  # noqa: S608 - likewise
        [{column: row[column] for column in columns} for row in rows],
    )
