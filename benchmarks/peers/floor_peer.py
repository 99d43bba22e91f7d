"""The floor: what asyncio pipes and one JSON pass cost, with no library between. No other peer can be faster.

It checks arguments (their types, by msgspec) and encodes the answer anew on each call, as the others must.
"""

import asyncio
import sys
from typing import Any

import msgspec

from benchmarks.peers import workload


class Arguments(msgspec.Struct):
    symbol: str
    limit: int


class Params(msgspec.Struct):
    name: str = ""
    arguments: Arguments | None = None


class Request(msgspec.Struct):
    method: str
    id: int | None = None
    params: Params | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Request).decode


def _tool(name: str, about: str, takes: dict[str, Any], gives: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": about, "inputSchema": takes, "outputSchema": gives}


def tools_list(tools: int) -> list[dict[str, Any]]:
    return [
        _tool("noop", "Do nothing.", workload.QUERY_SCHEMA, workload.NOOP_SCHEMA),
        _tool("rows", "Bars of one instrument.", workload.QUERY_SCHEMA, workload.ROWS_SCHEMA),
        *(
            _tool(name, workload.describe_filler(name), workload.FILLER_SCHEMA, workload.FILLER_OUTPUT_SCHEMA)
            for name in workload.filler_names(tools)
        ),
    ]


def _call(params: Params) -> dict[str, Any]:
    symbol = params.arguments.symbol if params.arguments else ""
    data = workload.rows_answer(symbol) if params.name == "rows" else workload.noop_answer(symbol)
    text = _encode(data).decode()
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": data}


def answer(frame: bytes, tools: int) -> bytes | None:
    """The response to one request, or None where there is nothing to answer."""
    request = _decode(frame)
    if request.id is None:
        return None
    match request.method:
        case "initialize":
            who = {"name": "floor", "version": "0"}
            result: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": who}
        case "tools/list":
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools_list(tools)}
        case _:
            result = _call(request.params or Params())
    return _encode({"jsonrpc": "2.0", "id": request.id, "result": result})


class Stdio(asyncio.Protocol):
    def __init__(self, out: asyncio.WriteTransport, tools: int, done: asyncio.Event) -> None:
        self._out, self._tools, self._done, self._rest = out, tools, done, b""

    def data_received(self, data: bytes) -> None:
        *frames, self._rest = (self._rest + data).split(b"\n")
        for frame in frames:
            if (response := answer(frame, self._tools)) is not None:
                self._out.write(response + b"\n")

    def connection_lost(self, _: Exception | None) -> None:
        self._done.set()


class Http(asyncio.Protocol):
    """Just enough HTTP/1.1: POST with a content length, answered in order on the same connection."""

    def __init__(self, tools: int) -> None:
        self._tools, self._rest = tools, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._out = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while (body := self._take_body()) is not None:
            self._out.write(_http(answer(body, self._tools)))

    def _take_body(self) -> bytes | None:
        head, gap, rest = self._rest.partition(b"\r\n\r\n")
        if not gap:
            return None
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(rest) < size:
            return None
        self._rest = rest[size:]
        return rest[:size]


def _http(body: bytes | None) -> bytes:
    if body is None:
        return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


async def serve_stdio(tools: int) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    await loop.connect_read_pipe(lambda: Stdio(out, tools, done), sys.stdin)
    await done.wait()


async def serve_http(tools: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Http(tools), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run((serve_http if sys.argv[1] == "http" else serve_stdio)(int(sys.argv[2])))
