"""The stdio transport as a client meets it: a real process, raw lines."""

from __future__ import annotations

import asyncio
import json
import os
import pkgutil
import pty
import signal
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from quantdeck.transports.sdk_seams import SEAMS

FIXTURE = Path(__file__).parents[1] / "support" / "stdio_fixture.py"
PATIENCE_S = 20.0
CLIENT = {"clientInfo": {"name": "test", "version": "0"}}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures by /proc")


def command(**keywords: Any) -> list[str]:
    return [sys.executable, str(FIXTURE), json.dumps(keywords)]


def request(request_id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(request_id: Any, tool: str, token: Any = None, **arguments: Any) -> dict[str, Any]:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request(request_id, "tools/call", name=tool, arguments=arguments, **meta)


def cancel(request_id: Any) -> dict[str, Any]:
    params = {"requestId": request_id}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def data(answer: dict[str, Any]) -> Any:
    return answer["result"]["structuredContent"]


class Program:
    """The fixture program, running."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self.process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    def send(self, *messages: dict[str, Any]) -> None:
        self.stdin.write(lines(*messages))

    async def line(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            text = await self.stdout.readline()
        assert text, f"the program has closed its output: {(await self.stderr.read()).decode()}"
        message: dict[str, Any] = json.loads(text)
        return message

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self.send(message)
        return await self.line()

    async def says(self, text: str) -> None:
        """Wait for a line on stderr."""
        async with asyncio.timeout(PATIENCE_S):
            while (line := (await self.stderr.readline()).decode()).strip() != text:
                assert line, f"stderr ended without {text!r}"

    async def end(self) -> tuple[list[dict[str, Any]], str]:
        """Close stdin; what else it wrote on stdout and stderr, after a clean exit."""
        self.stdin.close()
        return await self.ended()

    async def ended(self) -> tuple[list[dict[str, Any]], str]:
        async with asyncio.timeout(PATIENCE_S):
            out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
            assert await self.process.wait() == 0, err.decode()
        assert b"Traceback" not in err
        return [json.loads(line) for line in out.splitlines()], err.decode()


@asynccontextmanager
async def running(**keywords: Any):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command(**keywords), stdin=pipe, stdout=pipe, stderr=pipe, limit=2**24
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.fixture
async def program():
    async with running() as program:
        yield program


async def shake_hands(program: Program, **capabilities: Any) -> dict[str, Any]:
    hello = request(0, "initialize", protocolVersion="2025-11-25", capabilities=capabilities, **CLIENT)
    answer = await program.ask(hello)
    program.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return answer


# Both eras, and none.


async def test_a_client_that_shakes_hands_is_served(program):
    hello = await shake_hands(program)
    assert hello["result"]["protocolVersion"] == "2025-11-25"
    tools = (await program.ask(request(1, "tools/list")))["result"]["tools"]
    assert "noop" in [tool["name"] for tool in tools]


async def test_a_client_with_an_envelope_is_served_without_a_handshake(program):
    answer = await program.ask(request(1, "tools/list", _meta=ENVELOPE))
    assert answer["result"]["resultType"] == "complete"


async def test_a_bare_call_is_served_and_only_its_own_answer_is_seen(program):
    assert data(await program.ask(call(1, "noop"))) == {"ok": True}
    assert await program.end() == ([], "closing\n")


async def test_a_bare_call_after_a_ping_is_served(program):
    assert (await program.ask(PING))["result"] == {}
    assert "result" in await program.ask(request(1, "tools/list"))


async def test_initialize_after_a_bare_call_is_answered_like_any_other(program):
    await program.ask(call(1, "noop"))
    hello = await shake_hands(program)
    assert hello["result"]["serverInfo"]["name"] == "fixture"
    assert "result" in await program.ask(request(2, "tools/list"))


async def test_an_id_like_that_of_our_own_handshake_is_the_clients_once_that_is_done(program):
    await program.ask(call(1, "noop"))
    answer = await program.ask(call("quantdeck-handshake-free", "noop"))
    assert answer["id"] == "quantdeck-handshake-free"


# Reading.

BAD_LINES = {
    "broken JSON": (b'{"jsonrpc":', -32700, None),
    "invalid UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
    "a lone surrogate": (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700, None),
    "NaN": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700, None),
    "Infinity": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}', -32700, None),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
    "a number": (b"7", -32600, None),
    "no version": (b'{"id":1,"method":"ping"}', -32600, 1),
    "another version": (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', -32600, "a"),
    "a null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    "a true id": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    "a broken id": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    "a method that is no text": (b'{"jsonrpc":"2.0","id":3,"method":4}', -32600, 3),
    "params that are a list": (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', -32600, 3),
    "neither call nor answer": (b'{"jsonrpc":"2.0","id":3}', -32600, 3),
}


@pytest.mark.parametrize("line,code,request_id", BAD_LINES.values(), ids=BAD_LINES)
async def test_a_bad_line_is_answered_and_the_next_one_works(program, line, code, request_id):
    program.stdin.write(line + b"\n")
    answer = await program.line()
    assert (answer["error"]["code"], answer["id"]) == (code, request_id)
    assert (await program.ask(PING))["id"] == "ping"


async def test_blank_lines_and_carriage_returns_are_ignored(program):
    program.stdin.write(b"\n  \r\n\n" + lines(PING).replace(b"\n", b"\r\n"))
    assert (await program.line())["id"] == "ping"
    assert await program.end() == ([], "closing\n")


async def test_a_mark_of_the_byte_order_is_ignored_where_a_shell_puts_one(program):
    program.stdin.write(b"\xef\xbb\xbf\r\n\xef\xbb\xbf" + lines(PING))
    assert (await program.line())["id"] == "ping"
    assert await program.end() == ([], "closing\n")


async def test_a_line_in_many_pieces_is_one_line(program):
    for byte in lines(PING):
        program.stdin.write(bytes([byte]))
        await program.stdin.drain()
    assert (await program.line())["id"] == "ping"


@needs_proc
def test_an_over_long_line_is_answered_without_being_held_and_the_next_one_works():
    size = 64 * 2**20
    text = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * size + b'"}\n' + lines(PING)
    peak, out = run(text, max_line_bytes=2**20)
    bad, pong = (json.loads(line) for line in out.splitlines())
    assert (bad["id"], bad["error"]["code"]) == (None, -32600)
    assert "too long" in bad["error"]["message"]
    assert pong["id"] == "ping"
    ordinary, _ = run(lines(PING))
    assert peak - ordinary < size / 4


async def test_a_line_at_the_limit_is_no_longer_than_allowed():
    line = lines(PING)[:-1]
    async with running(max_line_bytes=len(line)) as program:
        program.stdin.write(line + b"\n" + line + b" \n")
        got = [await program.line(), await program.line()]
        assert sorted("error" in message for message in got) == [False, True]


async def test_an_id_already_in_flight_is_refused_and_the_first_call_still_answered(program):
    program.send(call(1, "sleep", token="t", seconds=60))
    await program.line()
    refused = await program.ask(call(1, "noop"))
    assert refused["error"]["code"] == -32600
    assert "in flight" in refused["error"]["message"]
    program.send(cancel(1), call("again", "noop"))
    assert (await program.line())["id"] == "again"


async def test_an_id_may_be_used_again_once_answered(program):
    for _ in range(2):
        assert data(await program.ask(call(1, "noop"))) == {"ok": True}


# Writing.


async def test_progress_comes_before_the_answer_and_in_order(program):
    program.send(call(1, "progress", token="t"))
    got = [await program.line() for _ in range(4)]
    assert [message.get("params", {}).get("progress") for message in got] == [0, 1, 2, None]
    assert data(got[-1]) == {"steps": 3}


async def test_fragments_in_a_result_arrive_as_json(program):
    answer = await program.ask(call(1, "big"))
    assert len(json.dumps(answer)) > 50_000
    assert data(answer)["rows"][1] == {"at": "2026-01-01T01:00:00Z", "open": 1.5, "close": 1.25}


async def test_an_integer_beyond_64_bits_arrives_whole(program):
    assert data(await program.ask(call(1, "unwritable", huge=True))) == {"huge": 2**70}


async def test_a_result_that_cannot_be_written_is_an_error_and_the_next_call_works(program):
    assert (await program.ask(call(1, "unwritable")))["error"]["code"] == -32603
    assert data(await program.ask(call(2, "noop"))) == {"ok": True}


@pytest.mark.parametrize("tool", ["shout", "spawn"])
async def test_neither_prints_nor_children_reach_the_wire(program, tool):
    assert (await program.ask(call(1, tool)))["id"] == 1
    out, err = await program.end()
    assert out == []
    assert "garbage" in err


@needs_proc
def test_a_client_that_stops_reading_costs_bounded_memory():
    calls = lines(*(call(i, "big") for i in range(1000)))  # 60 MB of answers
    peak, said = run_unread(lines(call("s", "sleep", seconds=60)) + calls, drain_s=1.0)
    ordinary, _ = run_unread(lines(call(1, "noop")))
    assert peak - ordinary < 20 * 2**20
    assert said == b"closing\nsleep was cancelled\n"


@needs_proc
def test_refusals_nobody_has_taken_cost_bounded_memory():
    peak, out = run(b"x\n" * 100_000)
    ordinary, _ = run(lines(PING))
    assert out.count(b"\n") == 100_000
    assert peak - ordinary < 50 * 2**20  # whatever the number of lines; unbounded it is five times that


async def test_a_client_that_has_gone_ends_the_program_quietly(program):
    program.send(call(1, "sleep", token="t", seconds=60))
    await program.line()
    program.process._transport.get_pipe_transport(1).close()
    await program.says("sleep was cancelled")
    async with asyncio.timeout(PATIENCE_S):
        assert await program.process.wait() == 0
    assert b"Traceback" not in await program.stderr.read()


# The end.


async def test_everything_asked_before_the_end_of_input_is_answered(program):
    program.send(*(call(i, "sleep", seconds=0.2) for i in range(200)))
    out, err = await program.end()
    assert sorted(message["id"] for message in out) == list(range(200))
    assert err == "closing\n"


async def test_a_last_line_without_a_line_feed_is_served(program):
    program.stdin.write(lines(call(1, "noop"))[:-1])
    out, _ = await program.end()
    assert [data(message) for message in out] == [{"ok": True}]


def test_answers_left_unread_at_the_end_of_input_are_kept_for_the_client():
    pipe = subprocess.PIPE
    with subprocess.Popen(command(), stdin=pipe, stdout=pipe) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(lines(*(call(i, "big") for i in range(300))))
        child.stdin.close()
        answers = [json.loads(line)["id"] for line in child.stdout]
    assert sorted(answers) == list(range(300))
    assert child.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_the_call_in_flight_finish(program, number):
    program.send(call(1, "sleep", token="t", seconds=1))
    await program.line()
    program.process.send_signal(number)
    out, err = await program.ended()
    assert [data(message) for message in out] == [{"slept": 1}]
    assert err == "closing\n"


async def test_a_signal_to_an_idle_program_ends_it(program):
    await program.ask(PING)
    program.process.send_signal(signal.SIGTERM)
    assert await program.ended() == ([], "closing\n")


async def test_a_second_signal_ends_at_once(program):
    program.send(call(1, "sleep", token="t", seconds=60))
    await program.line()
    program.process.send_signal(signal.SIGTERM)
    await program.says("closing")
    program.process.send_signal(signal.SIGTERM)
    out, err = await program.ended()
    assert [message["error"]["code"] for message in out] == [-32000]
    assert err == "sleep was cancelled\n"


async def test_a_drain_takes_no_longer_than_it_may():
    async with running(drain_s=0.1) as program:
        program.send(*(call(i, "sleep", seconds=60) for i in range(70)))
        out, _ = await program.end()
    assert [message["error"]["code"] for message in out] == [-32000] * 70


async def test_a_cancelled_call_is_not_waited_for(program):
    program.send(call(1, "sleep", token="t", seconds=60))
    await program.line()
    program.send(cancel(1))
    out, err = await program.end()
    assert out == []
    assert "sleep was cancelled" in err


async def test_a_cancelled_modern_call_is_not_waited_for(program):
    slow = call(1, "sleep", seconds=60)
    slow["params"]["_meta"] = {**ENVELOPE, "progressToken": "t"}
    program.send(slow)
    await program.line()
    program.send(cancel(1))
    out, _ = await program.end()
    assert out == []


async def test_listen_streams_are_closed_when_the_input_ends(program):
    listen = request(1, "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=ENVELOPE)
    assert (await program.ask(listen))["method"] == "notifications/subscriptions/acknowledged"
    out, err = await program.end()
    assert [message["id"] for message in out] == [1]
    assert err == "closing\n"


async def test_a_question_to_the_client_gets_its_answer(program):
    await shake_hands(program, elicitation={})
    question = await program.ask(call(1, "ask"))
    assert question["method"] == "elicitation/create"
    yes = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}
    assert data(await program.ask(yes)) == {"action": "accept"}


async def test_a_question_nobody_will_answer_does_not_hold_up_the_end(program):
    await shake_hands(program, elicitation={})
    program.send(call(1, "ask"))
    await program.line()
    out, _ = await program.end()
    assert [data(message) for message in out] == [{"error": "Connection closed"}]


# Bounds.


async def test_the_sixty_fifth_call_waits_and_the_rest_of_the_traffic_does_not(program):
    await shake_hands(program, elicitation={})
    question = await program.ask(call("asks", "ask"))
    program.send(*(call(i, "sleep", token=i, seconds=60) for i in range(63)))
    assert {(await program.line())["params"]["progressToken"] for _ in range(63)} == set(range(63))
    program.send(call("dropped", "noop"), call("waits", "noop"), cancel("dropped"))
    assert (await program.ask(call("waits", "noop")))["error"]["code"] == -32600
    # A call that did not wait would have been answered before the question's answer arrived.
    program.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert [(await program.line())["id"] for _ in range(2)] == ["asks", "waits"]
    program.send(*(cancel(i) for i in range(63)))
    out, _ = await program.end()
    assert out == []


@needs_proc
def test_calls_beyond_the_backlog_are_all_answered_but_not_read_before_there_is_room():
    sleeps = lines(*(call(i, "sleep", seconds=1) for i in range(64)))
    noops = lines(*(call(i, "noop", padding="x" * 5000) for i in range(64, 10_000)))
    peak, out = run(sleeps + noops)
    assert sorted(json.loads(line)["id"] for line in out.splitlines()) == list(range(10_000))
    ordinary, _ = run(lines(call(1, "noop")))
    assert peak - ordinary < len(noops) / 2


# What stdin and stdout may be.


def run(text: bytes, **keywords: Any) -> tuple[int, bytes]:
    """What the program needed at most, in bytes, and what it wrote."""
    with tempfile.TemporaryFile() as out:
        peak, _ = peak_of(text, out, **keywords)
        out.seek(0)
        return peak, out.read()


def run_unread(text: bytes, **keywords: Any) -> tuple[int, bytes]:
    """What the program needs at most when nobody reads its output, and what it says to that."""
    read_end, write_end = os.pipe()
    try:
        return peak_of(text, write_end, **keywords)
    finally:
        os.close(read_end)
        os.close(write_end)


def peak_of(text: bytes, out: Any, **keywords: Any) -> tuple[int, bytes]:
    with tempfile.NamedTemporaryFile() as peak:
        done = subprocess.run(
            command(**keywords),
            input=text,
            stdout=out,
            stderr=subprocess.PIPE,
            env={**os.environ, "STDIO_FIXTURE_PEAK": peak.name},
            check=True,
            timeout=2 * PATIENCE_S,
        )
        return int(peak.read()), done.stderr


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    program = " ".join(f"'{word}'" for word in command())
    requests = lines(*(call(i, "sleep", seconds=0.1) for i in range(3)))
    (folder / "requests.jsonl").write_bytes(requests)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script.replace("PROGRAM", program)],
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize(
    "script",
    [
        "cat requests.jsonl | PROGRAM",
        "cat requests.jsonl | PROGRAM | cat",
        "PROGRAM < requests.jsonl",
        "PROGRAM < requests.jsonl > out && cat out",
        "PROGRAM < requests.jsonl 2>&1 | grep -v closing",
    ],
)
def test_three_requests_from_a_shell_get_three_answers_and_exit_0(script, tmp_path):
    done = shell(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [0, 1, 2]


@pytest.mark.parametrize(
    "script",
    ["PROGRAM < /dev/null", "PROGRAM < requests.jsonl > /dev/null", "PROGRAM < /dev/null 2>&-"],
)
def test_nothing_in_or_out_is_no_error(script, tmp_path):
    done = shell(script, tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")


async def test_a_terminal_is_served_and_stays_blocking():
    controller, terminal = pty.openpty()
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command(), stdin=terminal, stdout=terminal, stderr=pipe)
    screen = os.fdopen(controller, "r+b", buffering=0)
    try:
        screen.write(lines(PING))
        typed = await asyncio.wait_for(asyncio.to_thread(screen.readline), PATIENCE_S)
        shown = await asyncio.wait_for(asyncio.to_thread(screen.readline), PATIENCE_S)
        assert json.loads(typed) == PING
        assert json.loads(shown)["id"] == "ping"
        assert os.get_blocking(terminal)
        screen.write(b"\x04")
        await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
        screen.close()
        os.close(terminal)


def test_shared_pipes_are_blocking_again_afterwards():
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    try:
        os.write(ours_out, lines(PING))
        os.close(ours_out)
        done = subprocess.run(command(), stdin=theirs_in, stdout=theirs_out, check=True, timeout=PATIENCE_S)
        assert done.returncode == 0
        assert os.get_blocking(theirs_in)
        assert os.get_blocking(theirs_out)
    finally:
        for fd in (theirs_in, ours_in, theirs_out):
            os.close(fd)


@pytest.mark.parametrize("name", SEAMS)
def test_the_installed_sdk_still_has_what_we_touch(name):
    pkgutil.resolve_name(name)  # raises where it has not
