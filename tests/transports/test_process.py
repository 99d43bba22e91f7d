"""The real program over stdio: what its neighbours may do to it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import PROGRAM, quantdeck

PATIENCE_S = 60


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("world")
    assert quantdeck("demo", "--days", "2", home=home).returncode == 0
    return home


def call(number: int, **arguments: Any) -> bytes:
    params = {"name": "get_top_strategies", "arguments": {"symbol": "BTC/USD", **arguments}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


@pytest.fixture
def started(world: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*PROGRAM, "serve", "strategy-mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "QUANTDECK_HOME": str(world)},
    ) as process:
        yield process
        process.kill()


def test_an_stderr_that_nobody_reads_never_stops_the_server(started):
    """Each call logs some 500 bytes; the pipe holds 64 KiB and nobody takes any of it."""
    assert started.stdin
    assert started.stdout
    for number in range(1, 400):
        started.stdin.write(call(number))
        started.stdin.flush()
        answer = json.loads(started.stdout.readline())
        assert (answer["id"], "result" in answer) == (number, True)
    started.stdin.close()
    assert started.wait(PATIENCE_S) == 0


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize("meta", [{}, ENVELOPE], ids=["legacy", "modern"])
def test_arguments_too_deep_to_be_written_are_invalid_ones(world, meta):
    deep = json.loads("[" * 400 + "]" * 400)
    params = {"name": "get_top_strategies", "arguments": {"symbol": deep}, "_meta": meta}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    done = quantdeck("serve", "strategy-mcp", home=world, stdin=asked)
    answer = json.loads(done.stdout)
    assert answer["result"]["isError"]
    assert "too deep" in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "</dev/null >&- 2>&-"])
def test_descriptors_that_were_closed_are_no_error(world, closed):
    """What the program opens next gets their numbers: its event loop, for one, which the wire must not take away."""
    program = " ".join(f"'{word}'" for word in PROGRAM)
    done = subprocess.run(
        ["bash", "-c", f"{program} serve strategy-mcp {closed}"],
        input=call(1),
        capture_output=True,
        check=False,
        env={**os.environ, "QUANTDECK_HOME": str(world), "QUANTDECK_LOG_LEVEL": "error"},
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    answered = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert answered == ([1] if closed == "2>&-" else [])


async def test_several_processes_answer_from_one_home_at_once(world):
    async def ask(number: int) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, "serve", "strategy-mcp",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "QUANTDECK_HOME": str(world)},
        )  # fmt: skip
        said, _ = await process.communicate(b"".join(call(10 * number + page, offset=page) for page in range(5)))
        assert process.returncode == 0
        return said

    answers = await asyncio.gather(*(ask(number) for number in range(4)))
    for lines in answers:
        results = [json.loads(line)["result"] for line in lines.splitlines()]
        assert [result.get("isError") for result in results] == [None] * 5
