"""The raw stdio client: writes a line, reads lines, matches ids. The same for every peer."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

from benchmarks import messages
from benchmarks.load import Call
from benchmarks.messages import Template
from benchmarks.process import START_TIMEOUT_S, PeerFailed, Process


class _Lines(asyncio.Protocol):
    def __init__(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_line, self._on_end, self._parts = on_line, on_end, list[bytes]()

    def data_received(self, data: bytes) -> None:
        if b"\n" not in data:
            self._parts.append(data)  # joined once per line: a 100 KB answer comes in pieces
            return
        *lines, rest = b"".join((*self._parts, data)).split(b"\n")
        self._parts = [rest] if rest else []
        for line in lines:
            self._on_line(line)

    def connection_lost(self, _: Exception | None) -> None:
        self._on_end()


class StdioClient:
    def __init__(self, process: Process) -> None:
        self._process, self._ids = process, count(messages.FIRST_ID)
        self._waiting: dict[int | None, asyncio.Future[bytes]] = {}
        self._sizes: dict[str, int] = {}

    async def open(self, tools: int | None) -> None:
        """Legacy handshake and first listing, as today's agents open a connection; `tools` there must be, if said."""
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Lines(self._arrived, self._ended), self._process.stdout
        )
        async with asyncio.timeout(START_TIMEOUT_S):
            messages.result(await self.ask(messages.INITIALIZE))
            os.write(self._process.stdin.fileno(), messages.INITIALIZED + b"\n")
            listed = messages.result(await self.ask(messages.template("tools/list", {})))
            if tools is not None:
                messages.check_tools(listed, tools)

    async def ask(self, request: Template) -> bytes:
        request_id = next(self._ids)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        # A plain write: 32 requests of 150 bytes fit many times into a pipe, so it cannot block.
        os.write(self._process.stdin.fileno(), request.frame(request_id) + b"\n")
        return await answer

    async def check(self, tool: str) -> int:
        """Read one answer in full; returns its size. Later answers are only held to that size."""
        async with asyncio.timeout(START_TIMEOUT_S):
            frame = await self.ask(messages.call(tool))
        messages.check_call(tool, messages.result(frame))
        self._sizes[tool] = len(frame)
        return len(frame)

    @asynccontextmanager
    async def lanes(self, tool: str, width: int) -> AsyncIterator[list[Call]]:
        """One pipe, so every lane is the same call."""
        request, size = messages.call(tool), self._sizes[tool]

        async def once() -> None:
            if len(await self.ask(request)) != size:
                raise PeerFailed(f"{tool}: an answer of another size than the first")

        yield [once] * width

    def _arrived(self, line: bytes) -> None:
        waiting = self._waiting.pop(messages.answer_id(line), None)
        if waiting and not waiting.done():
            waiting.set_result(line)

    def _ended(self) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(EOFError("the server closed its output"))
        self._waiting.clear()
