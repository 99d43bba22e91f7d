"""The raw HTTP client: keep-alive HTTP/1.1 over asyncio streams; reads JSON and SSE bodies. The same for every peer."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlsplit

from benchmarks import messages
from benchmarks.load import Call
from benchmarks.messages import Era, Template
from benchmarks.process import START_TIMEOUT_S, PeerFailed

STREAM_LIMIT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Answer:
    status: int
    head: bytes
    body: bytes

    @property
    def is_sse(self) -> bool:
        return b"text/event-stream" in self.head.lower()

    @property
    def frame(self) -> bytes:
        """The JSON-RPC response: the body, or the last data line of an event stream."""
        if not self.is_sse:
            return self.body
        data = [line[5:].strip() for line in self.body.splitlines() if line.startswith(b"data:")]
        return next((line for line in reversed(data) if line), b"")

    def header(self, name: bytes) -> bytes | None:
        lines = (line.partition(b":") for line in self.head.split(b"\r\n")[1:])
        return next((value.strip() for key, _, value in lines if key.lower() == name), None)


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def post(self, head: bytes, body: bytes) -> Answer:
        """Returns when the whole body is read: on a kept-alive connection only then can the next request go out."""
        self._writer.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
        answer_head = await self._reader.readuntil(b"\r\n\r\n")
        status, lowered = int(answer_head[9:12]), answer_head.lower()
        if b"transfer-encoding: chunked" in lowered:
            return Answer(status, answer_head, await self._chunks())
        size = lowered.partition(b"\r\ncontent-length:")[2].split(b"\r\n", 1)[0]
        return Answer(status, answer_head, await self._reader.readexactly(int(size or 0)))

    async def _chunks(self) -> bytes:
        parts = []
        while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
            parts.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readuntil(b"\r\n")
        return b"".join(parts)

    async def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    parts = urlsplit(url)
    streams = await asyncio.open_connection(parts.hostname, parts.port, limit=STREAM_LIMIT_BYTES)
    connection = Connection(*streams)
    try:
        yield connection
    finally:
        await connection.close()


@dataclass
class HttpClient:
    """One era's view of one server. Modern has no session; legacy has one for all its connections, as agents do."""

    url: str
    era: Era
    session: bytes | None = None
    _ids: Iterator[int] = field(default_factory=lambda: count(messages.FIRST_ID))
    _sizes: dict[str, int] = field(default_factory=dict)

    async def open(self, tools: int) -> None:
        async with asyncio.timeout(START_TIMEOUT_S), connected(self.url) as connection:
            if self.era == "legacy":
                await self._initialize(connection)
            listed = await self._ask(connection, messages.template("tools/list", {}, self.era))
            messages.check_tools(messages.result(listed.frame), tools)

    async def check(self, tool: str) -> Answer:
        """Read one answer in full. Later answers are only held to its size."""
        async with asyncio.timeout(START_TIMEOUT_S), connected(self.url) as connection:
            answer = await self._ask(connection, messages.call(tool, self.era))
        messages.check_call(tool, messages.result(answer.frame))
        self._sizes[tool] = len(answer.body)
        return answer

    @asynccontextmanager
    async def lanes(self, tool: str, width: int) -> AsyncIterator[list[Call]]:
        """One fresh connection per lane, warmed by one call: servers drop those left idle between rounds."""
        async with AsyncExitStack() as stack:
            lanes = [self._lane(await stack.enter_async_context(connected(self.url)), tool) for _ in range(width)]
            for lane in lanes:
                await lane()
            yield lanes

    def _lane(self, connection: Connection, tool: str) -> Call:
        request, size = messages.call(tool, self.era), self._sizes[tool]
        head = self._head(request)

        async def once() -> None:
            answer = await connection.post(head, request.frame(next(self._ids)))
            if answer.status != 200 or len(answer.body) != size:
                raise PeerFailed(f"{tool}: status {answer.status}, {len(answer.body)} bytes where the first had {size}")

        return once

    async def _initialize(self, connection: Connection) -> None:
        opened = await self._ask(connection, messages.INITIALIZE)
        messages.result(opened.frame)
        self.session = opened.header(b"mcp-session-id")
        noted = await connection.post(
            self._head(messages.template("notifications/initialized", {})), messages.INITIALIZED
        )
        if noted.status != 202:
            raise PeerFailed(f"answered {noted.status} to notifications/initialized")

    async def _ask(self, connection: Connection, request: Template) -> Answer:
        return await connection.post(self._head(request), request.frame(next(self._ids)))

    def _head(self, request: Template) -> bytes:
        parts = urlsplit(self.url)
        lines = [
            f"POST {parts.path} HTTP/1.1",
            f"host: {parts.netloc}",
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            *self._protocol_headers(request),
        ]
        return "".join(f"{line}\r\n" for line in lines).encode()

    def _protocol_headers(self, request: Template) -> list[str]:
        if self.era == "modern":
            names = [f"mcp-name: {request.name}"] if request.name else []
            return [f"mcp-protocol-version: {messages.MODERN}", f"mcp-method: {request.method}", *names]
        if request.method == "initialize":
            return []
        session = [f"mcp-session-id: {self.session.decode()}"] if self.session else []
        return [f"mcp-protocol-version: {messages.LEGACY}", *session]
