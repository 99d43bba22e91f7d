"""The demo world: chosen, never fallen into. `make` marks a home as one and fills it."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson

from quantdeck.connections.database import Database
from quantdeck.connections.databases import Databases
from quantdeck.connections.sqlite import SQLite
from quantdeck.core.clock import Clock, iso
from quantdeck.demo.book import Book
from quantdeck.demo.decisions import AGENT, LOOKS_BACK, decisions
from quantdeck.demo.following import evaluations, followed, last_words
from quantdeck.demo.runs import write_runs
from quantdeck.demo.trials import implementations
from quantdeck.demo.world import BEGAN, SILENT_SINCE, World
from quantdeck.domain.consensus import CURRENT_FOR
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.sql.evaluations import Evaluations

__all__ = ["AHEAD", "extend", "extend_decisions", "keep_current", "make", "topped_up"]

AHEAD = timedelta(days=30)
"""How far signals are written ahead, so that a world is at the present without anything running."""

MEASURED = timedelta(days=90)
"""How far back it is told at least how strategies did."""

_LEASE_S = 300.0

_SEEN = """
    INSERT INTO strategy_evaluations (impl_id, timeframe, began_at, seen_until, standing, updated_at)
    VALUES (:impl_id, :timeframe, :began_at, :seen_until, :standing, :updated_at)
    ON CONFLICT (impl_id) DO UPDATE SET seen_until = excluded.seen_until, standing = excluded.standing,
        updated_at = excluded.updated_at
        WHERE strategy_evaluations.seen_until < excluded.seen_until
"""

_TABLES = (
    "leases", "strategy_evaluations", "strategy_performance", "implementation_signals", "strategy_implementations",
    "strategy_specs", "positions", "risk_limits", "accounts",
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
    """Write what is known ahead further ahead, day by day, for as long as a server runs.

    Of several processes one does this to a home, and each looks again inside its transaction, so nothing is written
    twice. A world that was made anew meanwhile goes on as what it is now.
    """
    databases = Databases(settings)
    holder = str(uuid4())
    try:
        while True:
            if await Evaluations(databases.of("desk")).take("demo", holder, _LEASE_S):
                await topped_up(settings, databases, datetime.now(UTC))
            await asyncio.sleep(timedelta(hours=6).total_seconds())
    finally:
        await databases.close()


async def topped_up(settings: Settings, databases: Databases, now: datetime) -> None:
    """Have the world of this home known up to AHEAD of now, if there is one."""
    if (world := _marked(settings)) is not None:
        await extend(databases.of("desk"), world, now)
        await extend_decisions(databases.of("decisions"), world, now)


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
    specs, strategies, book = world.specs(), implementations(world), Book(world)
    since = now - timedelta(days=days)
    told = await asyncio.to_thread(followed, world, min(since, now - MEASURED), now + AHEAD)
    signals = [*last_words(world), *(row for row in told.signals if row["signal_timestamp"] >= since)]
    async with desk.transaction():
        for table in _TABLES:
            await desk.execute(f"DELETE FROM {table}")  # noqa: S608 - a literal of this module
        await _insert(desk, "strategy_specs", specs)
        await _insert(desk, "strategy_implementations", strategies)
        await _insert(desk, "implementation_signals", signals)
        await _insert(desk, "strategy_performance", told.weeks)
        await _insert(desk, "strategy_evaluations", list(evaluations(world, now + AHEAD, now)))
        await _insert(desk, "accounts", book.accounts())
        await _insert(desk, "risk_limits", book.risk_limits())
        await _insert(desk, "positions", book.positions())
    made = f"{len(specs)} specs, {len(strategies)} implementations, {len(signals)} signals, an account"
    if any(strategy["created_at"] <= now for strategy in strategies):
        return made
    return f"{made}. Nobody knows any of them at {iso(now)}, where the clock stands: they come after {BEGAN:%Y-%m-%d}"


async def _fill_decisions(diary: Database, world: World, days: int, now: datetime) -> str:
    """Of the days whose signals are in this world; with them those with which the stale symbol fell silent."""
    began = SILENT_SINCE - timedelta(days=2)
    rows = list(decisions(world, last_words(world), began + LOOKS_BACK, SILENT_SINCE + CURRENT_FOR))
    rows += _decided(world, now - timedelta(days=days), now + AHEAD)
    async with diary.transaction():
        for table in ("agent_decisions", "idempotency_keys"):  # a key would answer for a decision that is gone
            await diary.execute(f"DELETE FROM {table}")  # noqa: S608 - a literal of this module
        await _insert(diary, "agent_decisions", rows)
    return f"{len(rows)} decisions"


def _decided(world: World, since: datetime, until: datetime) -> list[dict[str, Any]]:
    """What follows from the signals between two instants alone."""
    return list(decisions(world, followed(world, since, until).signals, since + LOOKS_BACK, until))


async def extend(desk: Database, world: World, now: datetime) -> None:
    """Write signals and weeks up to AHEAD of now, where that is a day's worth or more."""
    if await _seen(desk, now) > now + AHEAD - timedelta(days=1):
        return
    since, until = await _seen(desk, now), now + AHEAD
    told = await asyncio.to_thread(followed, world, since, until)  # so long nobody else waits for it
    async with desk.transaction():
        since = await _seen(desk, now)
        await _insert(desk, "implementation_signals", [row for row in told.signals if row["signal_timestamp"] > since])
        await _insert(desk, "strategy_performance", [row for row in told.weeks if row["period_end"] > since])
        await desk.execute_many(_SEEN, list(evaluations(world, until, now)))


async def extend_decisions(diary: Database, world: World, now: datetime) -> None:
    """The same for what the agent will decide."""
    if await _last_decided(diary, now) > now + AHEAD - timedelta(days=1):
        return
    async with diary.transaction():
        since = await _last_decided(diary, now)
        rows = _decided(world, since - 2 * LOOKS_BACK, now + AHEAD)
        await _insert(diary, "agent_decisions", [row for row in rows if row["created_at"] > since])


async def _last_decided(diary: Database, now: datetime) -> datetime:
    row = await diary.row(
        'SELECT max(created_at) AS "latest [TIMESTAMP]" FROM agent_decisions WHERE caller = :agent', agent=AGENT
    )
    assert row is not None
    latest: datetime | None = row["latest"]
    return latest or now


async def _seen(desk: Database, now: datetime) -> datetime:
    """Up to when the world's strategies were followed; now, where none was."""
    row = await desk.row('SELECT max(seen_until) AS "latest [TIMESTAMP]" FROM strategy_evaluations')
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
