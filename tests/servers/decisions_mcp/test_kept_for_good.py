"""A decision is stored for good when its answer is there, and under a key it is stored once, whoever dies when.

Real processes over stdio, killed as kill -9 does, on each engine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from quantdeck.connections.database import Database
from quantdeck.connections.databases import Databases
from quantdeck.settings import Settings
from tests.servers.decisions_mcp.conftest import WHY
from tests.support import postgresql
from tests.support.program import PROGRAM

PATIENCE_S = 60
DEADLINE_S = 0.3

_CLAIMS = """
    SELECT count(*) AS held FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'idempotency_keys'
"""


class Process:
    """A server that somebody has started, and its one client."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def ask(self, key: str | None = None) -> None:
        meta = {} if key is None else {"_meta": {"quantdeck/idempotency_key": key}}
        params = {"name": "save_decision", "arguments": WHY, **meta}
        assert self._process.stdin is not None
        self._process.stdin.write(
            orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}) + b"\n"
        )

    async def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = await self._process.stdout.readline()
        body: dict[str, Any] = orjson.loads(orjson.loads(line)["result"]["content"][0]["text"])
        return body

    async def killed(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@dataclass(frozen=True)
class World:
    """Where the servers keep what they are told, seen from beside them."""

    database: Database
    environment: dict[str, str]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Process]:
        env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        pipes: Any = dict.fromkeys(("stdin", "stdout"), asyncio.subprocess.PIPE)
        command = [*PROGRAM, "serve", "decisions-mcp"]
        process = Process(await asyncio.create_subprocess_exec(*command, env=env | self.environment, **pipes))
        try:
            yield process
        finally:
            await process.killed()

    async def stored(self) -> list[str]:
        return [row["decision_id"] for row in await self.database.rows("SELECT decision_id FROM agent_decisions")]

    async def claims_under_way(self) -> int:
        """How many transactions hold a key, where somebody else can know."""
        if self.database.source == "sqlite":
            return 0
        (row,) = await self.database.rows(_CLAIMS)
        return int(row["held"])

    @asynccontextmanager
    async def in_the_way(self) -> AsyncIterator[None]:
        """Nobody can add a decision meanwhile."""
        async with self.database.transaction():
            if self.database.source == "postgresql":
                await self.database.execute("LOCK TABLE agent_decisions IN EXCLUSIVE MODE")
            yield


@pytest.fixture
async def world(database: dict[str, Any], tmp_path: Path) -> AsyncIterator[World]:
    settings = Settings(home=tmp_path / "home", **database)
    databases = Databases(settings)
    await databases.migrate()
    environment = {"QUANTDECK_HOME": str(tmp_path / "home"), "QUANTDECK_LOG_LEVEL": "error"}
    if database:
        environment["QUANTDECK_DATABASE"] = database["database"]
    yield World(databases.of("decisions"), environment)
    await databases.close()


async def test_what_was_answered_survives_kill_9_right_after(world):
    async with world.serving() as server:
        server.ask()
        told = await server.answer()
    assert await world.stored() == [told["data"]["decision_id"]]


@pytest.mark.parametrize("database", [{}], ids=["sqlite"])
async def test_a_commit_of_sqlite_waits_for_the_disk(world):
    async with world.database.transaction():
        assert await world.database.rows("PRAGMA synchronous") == [{"synchronous": 2}]  # FULL
    assert await world.database.rows("PRAGMA journal_mode") == [{"journal_mode": "wal"}]


@pytest.mark.services
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_what_was_answered_survives_a_crash_of_postgresql_too(world):
    async with world.serving() as server:
        server.ask("k")
        told = await server.answer()
    with postgresql.available().stopped():
        pass
    assert await world.stored() == [told["data"]["decision_id"]]


async def at_once(world: World, server: Process) -> None:
    """Killed before it can have done much."""


async def at_its_first_trace(world: World, server: Process) -> None:
    """Killed while its transaction is open or just over, as far as one beside it can see."""
    log = Path(world.environment["QUANTDECK_HOME"], "decisions.db-wal")
    async with asyncio.timeout(PATIENCE_S):
        while not (_written(log) or await world.stored() or await world.claims_under_way()):
            pass


def _written(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


async def once_answered(world: World, server: Process) -> None:
    """Killed when its work is done and told."""
    assert (await server.answer())["data"]["saved"]


@pytest.mark.parametrize("moment", [at_once, at_its_first_trace, once_answered], ids=lambda moment: moment.__name__)
async def test_a_save_that_is_killed_and_repeated_under_its_key_is_one_decision(
    world: World, moment: Callable[[World, Process], Awaitable[None]]
):
    async with world.serving() as server:
        server.ask("k")
        await moment(world, server)
    killed_with = await world.stored()
    async with world.serving() as server:
        server.ask("k")
        told = await server.answer()
    assert await world.stored() == [told["data"]["decision_id"]]
    assert killed_with in ([], [told["data"]["decision_id"]])
    assert killed_with or moment is not once_answered


async def test_a_save_whose_deadline_passed_and_whose_process_was_killed_is_one_decision_when_repeated(world):
    world.environment["QUANTDECK_DEADLINE_S"] = orjson.dumps({"save_decision": DEADLINE_S}).decode()
    async with world.in_the_way(), world.serving() as server:
        server.ask("k")
        assert (await server.answer())["error"]["code"] == "TIMEOUT"
    del world.environment["QUANTDECK_DEADLINE_S"]
    async with world.serving() as server:
        server.ask("k")
        told = await server.answer()
        server.ask("k")
        assert (await server.answer())["data"] == told["data"]
    assert await world.stored() == [told["data"]["decision_id"]]


async def test_a_save_whose_deadline_passed_is_finished_and_replayed_when_it_can_be(world):
    world.environment["QUANTDECK_DEADLINE_S"] = orjson.dumps({"save_decision": DEADLINE_S}).decode()
    async with world.serving() as server:
        async with world.in_the_way():
            server.ask("k")
            assert (await server.answer())["error"]["code"] == "TIMEOUT"
        async with asyncio.timeout(PATIENCE_S):
            while "error" in (told := await again(server)):
                assert told["error"]["code"] == "TIMEOUT"
    assert await world.stored() == [told["data"]["decision_id"]]


async def again(server: Process) -> dict[str, Any]:
    server.ask("k")
    return await server.answer()


async def test_two_processes_that_save_under_one_key_at_once_save_one_decision(world):
    async with world.serving() as one, world.serving() as other:
        async with world.in_the_way():
            for server in (one, other):
                server.ask("k")
        told = await asyncio.gather(one.answer(), other.answer())
    assert told[0]["data"] == told[1]["data"]
    assert await world.stored() == [told[0]["data"]["decision_id"]]
