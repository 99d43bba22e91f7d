"""The cage, assuming the worst: programs without an engine's manners, and an engine that may do everything. C of the
research."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quantdeck.core.errors import Unreachable
from quantdeck.sources.sandbox import Analysis, Report, deno
from quantdeck.sources.sandbox.cage import ENVIRONMENT, Cage, Level, readable
from quantdeck.sources.sandbox.doors import Calls
from quantdeck.sources.sandbox.trial import attempted, tried
from quantdeck.sources.sandbox.worker import Engine, Worker

BREACH = Path(__file__).parents[2] / "support" / "sandbox_breach.js"


async def test_a_raw_program_in_the_cage_can_do_nothing():
    found, told = await attempted("full")
    assert told == "done"
    assert [name for name, was_possible in found.items() if was_possible] == []
    assert len(found) > 40


async def test_with_a_jit_it_can_make_code_and_nothing_else():
    found, told = await attempted("full+jit")
    assert told == "done"
    possible = [name for name, was_possible in found.items() if was_possible]
    assert possible == ["map executable memory", "make memory executable"]


async def test_without_the_cage_the_trial_says_so():
    """Or it could not fail."""
    found, _ = await attempted("none")
    assert found["read a file"]
    assert "possible" in await tried("none")


async def breach(tmp_path: Path, *v8: str, level: Level = "full") -> dict[str, str]:
    """How each attempt of a Deno with every permission ends, in the cage."""
    from deno import find_deno_bin  # type: ignore[import-untyped]  # it has no types

    canary, binary = tmp_path / "canary", find_deno_bin()
    canary.write_text("secret")
    listening = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        unix.listen()
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            flags = ("-A", "--no-prompt", "--no-npm", "--no-remote", f"--v8-flags={','.join(v8)}")
            program = (binary, "run", *flags, str(BREACH), str(os.getpid()), str(canary), str(port))
            cage = Cage(program, readable(binary, f"r:{BREACH}", "w:/dev/null"), level)
            process = await asyncio.create_subprocess_exec(
                *cage.line(parent=os.getpid()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=ENVIRONMENT,
            )
            async with asyncio.timeout(40):
                out, error = await process.communicate()
    assert canary.read_text() == "secret"
    assert sorted(os.listdir(tmp_path)) == ["canary", "socket"]  # noqa: PTH208 - this is no place for an async one
    lines = {name: how for how, _, name in (line.partition(" ") for line in out.decode().splitlines())}
    assert lines.pop("", None) == "done", error
    return lines


@pytest.mark.parametrize("level, flag", [("full", "--jitless"), ("full+jit", "--max-heap-size=128")])
async def test_an_engine_with_every_permission_can_do_no_more(tmp_path, level, flag):
    found = await breach(tmp_path, flag, level=level)
    assert {name: how for name, how in found.items() if how != "refused"} == {}
    assert len(found) >= 29


async def held(code: str, read) -> list[Any]:
    """What the worker's process looks like from outside while it waits for a call."""
    worker = await Worker.boot(deno.engine("full"))
    seen = []

    async def ask(method, arguments):
        seen.append(read(worker.pid))
        return b"1"

    report = Report()
    try:
        await worker.run(Analysis(code), Calls(ask, report), report)
    finally:
        await worker.close()
    assert report.problem is None
    return seen


async def test_a_worker_has_three_variables_three_descriptors_and_no_secret():
    def read(pid):
        return (
            Path(f"/proc/{pid}/environ").read_bytes(),
            sorted(int(link.name) for link in Path(f"/proc/{pid}/fd").iterdir()),
            Path(f"/proc/{pid}/cmdline").read_bytes(),
            Path(f"/proc/{pid}/status").read_text(),
            Path(f"/proc/{pid}/limits").read_text(),
        )

    ((environment, files, command, status, limits),) = await held("return await pyth.getSymbols()", read)
    assert {entry.split(b"=")[0] for entry in environment.split(b"\0") if entry} == {b"HOME", b"NO_COLOR", b"TZ"}
    assert files[:3] == [0, 1, 2]
    assert b"CANARY" not in environment + command
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert "Max core file size        0                    0" in limits
    assert "Max file size             1048576              1048576" in limits


async def test_the_limit_of_memory_is_set_before_any_code_is_sent():
    worker = await Worker.boot(deno.engine("full"))
    try:
        soft, hard = resource.prlimit(worker.pid, resource.RLIMIT_DATA)
    finally:
        await worker.close()
    assert soft == hard
    assert soft < 2**31


async def test_an_engine_that_cannot_be_caged_is_not_started(tmp_path):
    """A cage without the files of the engine is no cage that lets it out."""
    cage = Cage((sys.executable, "-c", "print('out')"), (), "full")
    process = await asyncio.create_subprocess_exec(
        *cage.line(parent=os.getpid()), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, error = await process.communicate()
    assert (out, process.returncode) == (b"", 126)
    assert error.startswith(b"launcher: ")


async def test_a_launcher_whose_server_is_gone_starts_nothing():
    cage = Cage(("/bin/true",), (), "none")
    process = await asyncio.create_subprocess_exec(*cage.line(parent=1), stderr=asyncio.subprocess.PIPE)
    _, error = await process.communicate()
    assert process.returncode == 126
    assert b"the server ended" in error


async def test_all_of_an_engines_environment_is_ours():
    assert set(ENVIRONMENT) == {"HOME", "NO_COLOR", "TZ"}
    engine = deno.engine("full")
    assert isinstance(engine, Engine)
    assert not any("CANARY" in word for word in engine.cage.line(parent=0))


@pytest.mark.parametrize(
    "flag, instead, said",
    [
        ("--disallow-code-generation-from-strings,", "", "code can be made of strings"),
        ("--deny-net", "--allow-net", "net is permitted"),
        ("--deny-read", "--allow-read", "read is permitted"),
    ],
)
async def test_an_engine_whose_own_protections_are_not_there_is_none(flag, instead, said):
    """A flag that an engine does not know protects nothing, and V8 says little of it."""
    whole = deno.engine("full")
    program = tuple(word.replace(flag, instead) for word in whole.cage.program)
    assert program != tuple(whole.cage.program)
    weak = replace(whole, cage=replace(whole.cage, program=program))
    with pytest.raises(Unreachable, match=said):
        await Worker.boot(weak)
