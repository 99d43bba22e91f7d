"""Processes that share a home share its idempotency keys; one that is killed leaves an unknown outcome."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from itertools import permutations
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from quantdeck.connections.sqlite import SQLite
from quantdeck.core.once import Slot, Unknown
from quantdeck.sources.coordination.embedded import LeaseJournal

SLOT = Slot("alice:save", "k", "same")
LEASE_S = 0.05
PATIENCE_S = 30


def _spawned(work: Any, *arguments: Any) -> Any:
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()
    return process.exitcode


def _append(home: Path, mine: list[Event], theirs: list[Event]) -> None:
    """Do a thing for each event, which says that this process wants it."""

    async def run() -> None:
        database = SQLite(home / "state.db", groups=("journal", "state"))
        journal = LeaseJournal(lambda: database)

        async def effect() -> bytes:
            with (home / "effects").open("a") as effects:
                effects.write(f"{os.getpid()}\n")
            await asyncio.to_thread(theirs[number].wait, PATIENCE_S)  # so that the other comes while this is under way
            return b'{"done":true}'

        for number, wanted in enumerate(mine):
            wanted.set()
            recorded = await journal.run(Slot("alice:save", f"k{number}", "same"), effect)
            assert recorded.answer == b'{"done":true}'
        await database.close()

    asyncio.run(run())


def _die_between_effect_and_record(home: Path) -> None:
    async def run() -> None:
        database = SQLite(home / "state.db", groups=("journal", "state"))

        async def effect() -> bytes:
            (home / "effects").write_text("done\n")
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        await LeaseJournal(lambda: database, lease_s=LEASE_S).run(SLOT, effect)

    asyncio.run(run())


def _die_inside_the_transaction(home: Path) -> None:
    async def run() -> None:
        database = SQLite(home / "desk.db", groups=("journal",))
        await database.execute("CREATE TABLE IF NOT EXISTS deeds (what TEXT)")

        async def effect() -> bytes:
            await database.execute("INSERT INTO deeds VALUES ('done')")
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        await database.journal.run(SLOT, effect)

    asyncio.run(run())


async def test_two_processes_on_one_home_do_a_thing_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    wanted = [[context.Event() for _ in range(3)] for _ in range(2)]
    processes = [context.Process(target=_append, args=(tmp_path, *events)) for events in permutations(wanted)]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len((tmp_path / "effects").read_text().splitlines()) == 3


async def test_a_process_killed_between_effect_and_record_leaves_an_unknown_outcome(tmp_path):
    assert await asyncio.to_thread(_spawned, _die_between_effect_and_record, tmp_path) == -signal.SIGKILL
    database = SQLite(tmp_path / "state.db", groups=("journal", "state"))

    async def never() -> bytes:
        raise AssertionError("an effect of unknown outcome must not be repeated")

    journal = LeaseJournal(lambda: database, lease_s=LEASE_S)
    for _ in range(2):
        with pytest.raises(Unknown):
            await journal.run(SLOT, never)
    await database.close()
    assert (tmp_path / "effects").read_text() == "done\n"


async def test_a_process_killed_inside_the_transaction_leaves_nothing(tmp_path):
    assert await asyncio.to_thread(_spawned, _die_inside_the_transaction, tmp_path) == -signal.SIGKILL
    database = SQLite(tmp_path / "desk.db", groups=("journal",))

    async def effect() -> bytes:
        await database.execute("INSERT INTO deeds VALUES ('done')")
        return b"{}"

    assert not (await database.journal.run(SLOT, effect)).replayed
    assert (await database.journal.run(SLOT, effect)).replayed
    assert len(await database.rows("SELECT * FROM deeds")) == 1
    await database.close()
