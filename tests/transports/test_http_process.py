"""A process that serves HTTP: how it begins, what it refuses to begin with, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from quantdeck.settings import Http, Settings
from quantdeck.transports.http import bind
from tests.support.fixture_server import NOTES
from tests.support.over_http import PATIENCE_S, PLAIN, Session, call, modern, modern_headers

ROOT = Path(__file__).parents[2]


@dataclass
class Program:
    """A server in a process of its own."""

    process: asyncio.subprocess.Process
    url: str = ""
    said: list[str] = field(default_factory=list)

    async def started(self) -> None:
        assert self.process.stderr
        async with asyncio.timeout(PATIENCE_S):
            while not self.url:
                line = (await self.process.stderr.readline()).decode()
                assert line, self.said
                self.said.append(line)
                if line.startswith("quantdeck: serving "):
                    self.url = line.strip().rpartition(" on ")[2].removesuffix("/mcp")

    async def ended(self) -> int:
        assert self.process.stderr
        async with asyncio.timeout(PATIENCE_S):
            self.said += (await self.process.stderr.read()).decode().splitlines(keepends=True)
            return await self.process.wait()

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)


@asynccontextmanager
async def program(*command: str) -> AsyncIterator[Program]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("QUANTDECK_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=ROOT, stderr=asyncio.subprocess.PIPE, env=clean
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@asynccontextmanager
async def serving(home: Path, **said: Any) -> AsyncIterator[tuple[Program, httpx2.AsyncClient]]:
    settings = Settings(home=home, http=Http(port=0, **said.pop("http", {})), **said)
    async with program("-m", "tests.support.fixture_server", settings.model_dump_json()) as server:
        await server.started()
        async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=PATIENCE_S) as http:
            yield server, http


def decent(server: Program) -> bool:
    """Whether it had nothing to complain of."""
    told = [json.loads(line) for line in server.said if line.startswith("{")]
    return all(line["level"] == "info" for line in told) and "Traceback" not in "".join(server.said)


@asynccontextmanager
async def listening(http: httpx2.AsyncClient) -> AsyncIterator[httpx2.Response]:
    """A modern stream, acknowledged."""
    params = {"notifications": {"resourceSubscriptions": [NOTES]}}
    message = modern({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params})
    async with http.stream("POST", "/mcp", json=message, headers=modern_headers(message)) as stream:
        lines = stream.aiter_lines()
        while not (line := await anext(lines)).startswith("data:"):
            pass
        assert "acknowledged" in line
        stream.extensions["lines"] = lines
        yield stream


async def _held(
    http: httpx2.AsyncClient, session: Session, tool: str, **arguments: Any
) -> asyncio.Task[httpx2.Response]:
    """A call that waits at the gate already."""
    waiting = asyncio.create_task(session.post(call(tool, 7, **arguments)))
    answer = await http.post("/mcp/tools/call", json={"name": "held"})
    assert answer.status_code == 200
    return waiting


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_streams_and_lets_calls_be_answered(tmp_path, number):
    async with serving(tmp_path, deadline_s={"hold": 1.0}) as (server, http):
        session = await Session(http).open()
        held = await _held(http, session, "hold", label="a")
        async with http.stream("GET", "/mcp", headers=session.headers) as pushed, listening(http) as listened:
            assert pushed.status_code == 200
            server.signal(number)
            assert [line async for line in pushed.aiter_lines() if line and not line.startswith(":")] == []
            rest = [line async for line in listened.extensions["lines"] if line.startswith("data:")]
            assert json.loads(rest[-1][5:])["id"] == "l"
        answer = await held
        assert "TIMEOUT" in answer.text
        assert await server.ended() == 0
        assert decent(server), server.said


async def test_a_stream_with_a_call_in_it_is_finished_too(tmp_path):
    async with serving(tmp_path, deadline_s={"count_held": 1.0}) as (server, http):
        session = await Session(http).open()
        message = call("count_held", 7, meta={"progressToken": "p"})
        async with http.stream("POST", "/mcp", json=message, headers=session.headers) as stream:
            lines = stream.aiter_lines()
            while "notifications/progress" not in await anext(lines):
                pass
            server.signal()
            rest = [line async for line in lines if line.startswith("data:")]
        assert "TIMEOUT" in rest[-1]
        assert await server.ended() == 0
        assert decent(server), server.said


async def test_a_request_that_had_begun_is_read_and_answered(tmp_path):
    async with serving(tmp_path) as (server, http):
        session = await Session(http).open()
        body = json.dumps({"name": "echo", "arguments": {"label": "late"}}).encode()
        url = httpx2.URL(server.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = {**PLAIN, "host": f"{url.host}:{url.port}", "content-length": len(body), "expect": "100-continue"}
        told = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"POST /mcp/tools/call HTTP/1.1\r\n{told}\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        async with http.stream("GET", "/mcp", headers=session.headers) as pushed:
            server.signal()
            assert [line async for line in pushed.aiter_lines() if line and not line.startswith(":")] == []
        writer.write(body)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"label":"late"' in answer
        writer.close()
        assert await server.ended() == 0
        assert decent(server), server.said


async def test_what_is_not_over_when_the_time_to_drain_is_up_is_cut_off(tmp_path):
    async with serving(tmp_path, http={"drain_s": 0.5}) as (server, http):
        held = await _held(http, await Session(http).open(), "hold", label="a")
        server.signal()
        answer = await held
        assert answer.status_code == 503
        assert "shut down before this was over" in answer.json()["error"]["message"]
        assert await server.ended() == 0


async def test_a_second_signal_waits_for_nothing(tmp_path):
    async with serving(tmp_path) as (server, http):
        session = await Session(http).open()
        held = await _held(http, session, "hold", label="a")
        async with http.stream("GET", "/mcp", headers=session.headers) as pushed:
            server.signal()
            assert [line async for line in pushed.aiter_lines() if line and not line.startswith(":")] == []
        server.signal()
        with pytest.raises(httpx2.TransportError):
            await held
        assert await server.ended() == 0


async def test_the_line_that_says_where_it_serves_is_the_only_one_that_is_no_log(tmp_path):
    (tmp_path / "home").mkdir()
    async with program("-m", "quantdeck", "serve", "strategy-mcp", "--http", "--port", "0") as server:
        await server.started()
        port = int(server.url.rpartition(":")[2])
        server.signal()
        assert await server.ended() == 0
    assert [line for line in server.said if not line.startswith("{")] == [
        f"quantdeck: serving strategy-mcp on http://127.0.0.1:{port}/mcp\n"
    ]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="of Linux")
def test_a_client_who_takes_nothing_is_given_up_by_the_system():
    with bind(Http(port=0), guarded=False) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert 0 < accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 300_000


async def _refused(*options: str) -> str:
    async with program("-m", "quantdeck", "serve", "strategy-mcp", "--http", *options) as server:
        assert await server.ended() == 2
        [sentence] = server.said
        return sentence


async def test_options_of_http_are_not_ignored_over_stdio():
    for options in (("--port", "0"), ("--host", "::1"), ("--stateless",), ("--trusted-proxies", "::1")):
        async with program("-m", "quantdeck", "serve", "strategy-mcp", *options) as server:
            assert await server.ended() == 2
            assert server.said == [f"quantdeck: {options[0]} means something over HTTP only; add --http\n"]


async def test_a_port_in_use_is_one_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        sentence = await _refused("--port", str(port))
    assert sentence == f"quantdeck: 127.0.0.1:{port} is in use; choose another port with --port, or 0 for a free one\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - it is refused
async def test_other_machines_are_not_let_in_without_a_token(host):
    sentence = await _refused("--port", "0", "--host", host)
    assert f"{host} can be reached from other machines, and no token is configured" in sentence


@pytest.mark.parametrize("options", [("--host", "no.such.host.invalid"), ("--host", "192.0.2.1"), ("--port", "99999")])
async def test_an_address_that_cannot_be_bound_is_one_sentence(options, monkeypatch):
    monkeypatch.setenv("AUTH_TOKEN", "t")
    sentence = await _refused("--port", "0", *options)
    assert "Traceback" not in sentence
    assert sentence.startswith("quantdeck: ")
