"""The floor with SQL: the floor's pipes, a tool's own statements by the bare driver, the rows as JSON. Nothing else.

No pipeline, no checks, no pool: what is left is what any program adds to that SQL that answers it over the same wire.
"""

import asyncio
import pickle
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import orjson

from benchmarks.peers import floor_peer
from quantdeck.connections import sqlite_values  # noqa: F401 - tells the driver how columns are read
from quantdeck.connections.postgresql import _set_types as set_types

Asked = tuple[list[tuple[str, list[Any]]], bool]  # its statements, and whether they are one transaction
Rows = list[dict[str, Any]]


class Params(msgspec.Struct):
    name: str = ""
    arguments: dict[str, Any] | None = None


class Request(msgspec.Struct):
    method: str
    id: int | None = None
    params: Params | None = None


_decode = msgspec.json.Decoder(Request).decode


def by_sqlite(connection: sqlite3.Connection, asked: Asked) -> Rows:
    statements, together = asked
    found: Rows = []
    if together:
        connection.execute("BEGIN")
    for text, values in statements:
        cursor = connection.execute(text, values)
        names = [column[0] for column in cursor.description]
        found += [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    if together:
        connection.execute("COMMIT")
    return found


async def by_asyncpg(connection: Any, asked: Asked) -> Rows:
    statements, together = asked
    found: Rows = []
    if together:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    for text, values in statements:
        found += map(dict, await connection.fetch(text, *values))
    if together:
        await connection.execute("COMMIT")
    return found


class Stdio(asyncio.Protocol):
    def __init__(
        self, out: asyncio.WriteTransport, rows: Callable[[str], Awaitable[Rows]], done: asyncio.Event
    ) -> None:
        self._out, self._rows, self._done, self._rest = out, rows, done, b""
        self._tasks: set[asyncio.Task[None]] = set()

    def data_received(self, data: bytes) -> None:
        *frames, self._rest = (self._rest + data).split(b"\n")
        for frame in frames:
            request = _decode(frame)
            if request.method != "tools/call" or request.params is None or request.params.name == "noop":
                if (response := floor_peer.answer(frame, 0)) is not None:
                    self._out.write(response + b"\n")
                continue
            task = asyncio.get_running_loop().create_task(self._answer(request))
            self._tasks.add(task)
            task.add_done_callback(self._answered)

    async def _answer(self, request: Request) -> None:
        assert request.params is not None
        data = orjson.dumps({"items": await self._rows(request.params.name)}, default=str)
        text = {"type": "text", "text": data.decode()}
        result = {"content": [text], "structuredContent": orjson.Fragment(data)}
        self._out.write(orjson.dumps({"jsonrpc": "2.0", "id": request.id, "result": result}) + b"\n")

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.exception() is not None:
            self._out.close()  # the client hears that there is no answer
            self._done.set()

    def connection_lost(self, _: Exception | None) -> None:
        self._done.set()


async def serve(questions: Mapping[str, tuple[str, Asked]]) -> None:
    """`questions` are by name: an address, and what is asked there."""
    connections: dict[str, Any] = {}
    turn = asyncio.Lock()
    for address, _ in questions.values():
        if address not in connections and "://" in address:
            connections[address] = await asyncpg.connect(address)
            await set_types(connections[address])
        elif address not in connections:
            connections[address] = sqlite3.connect(
                address, detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES
            )
            connections[address].isolation_level = None

    async def rows(name: str) -> Rows:
        address, asked = questions[name]
        if "://" in address:
            async with turn:
                return await by_asyncpg(connections[address], asked)
        return by_sqlite(connections[address], asked)

    loop, done = asyncio.get_running_loop(), asyncio.Event()
    out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    await loop.connect_read_pipe(lambda: Stdio(out, rows, done), sys.stdin)
    await done.wait()


if __name__ == "__main__":
    asyncio.run(serve(pickle.loads(Path(sys.argv[1]).read_bytes())))  # noqa: S301 - our own, written a moment ago
