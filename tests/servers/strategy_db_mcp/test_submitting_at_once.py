"""Processes that share a home submit one name at once."""

from __future__ import annotations

import asyncio
import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import orjson

from quantdeck.app import open_app
from quantdeck.servers import load
from quantdeck.settings import Settings
from tests.support.specs import spec

PROCESSES, EACH = 2, 25
PATIENCE_S = 30


def _submit(home: Path, ready: Barrier, number: int) -> None:
    async def run() -> None:
        async with open_app(Settings(home=home), (load("strategy-db-mcp"),)) as app:
            submit = app.tool("submit_new_spec")
            assert submit is not None
            await asyncio.to_thread(ready.wait, PATIENCE_S)
            said = [spec(description=f"{number} {one}") for one in range(EACH)]
            answers = await asyncio.gather(*(app.call(submit, one) for one in said))
        (home / f"{number}.json").write_bytes(orjson.dumps([orjson.loads(answer.encoded) for answer in answers]))

    asyncio.run(run())


async def test_of_two_processes_at_once_one_creates_it_and_all_others_hear_its_id(tmp_path):
    async with open_app(Settings(home=tmp_path), ()) as app:
        await app.databases.migrate()
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(PROCESSES)
    processes = [context.Process(target=_submit, args=(tmp_path, ready, number)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    bodies = [body for n in range(PROCESSES) for body in orjson.loads((tmp_path / f"{n}.json").read_bytes())]
    (made,) = [body["data"]["spec_id"] for body in bodies if "data" in body]
    told = [(body["error"]["code"], body["error"]["details"]["spec_id"]) for body in bodies if "error" in body]
    assert told == [("DUPLICATE_NAME", made)] * (PROCESSES * EACH - 1)
