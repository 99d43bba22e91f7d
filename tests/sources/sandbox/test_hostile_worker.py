"""An engine in the hands of the code it runs: what it may say is read as if it came from the code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from quantdeck.core.errors import Unreachable
from quantdeck.sources.sandbox import Analysis, Report
from quantdeck.sources.sandbox.cage import Cage
from quantdeck.sources.sandbox.doors import Calls
from quantdeck.sources.sandbox.monty import explain
from quantdeck.sources.sandbox.worker import Engine, Worker
from tests.support.sandbox import descendants, never, nobody, open_files

_READY = "import os, sys, json, time\nsay = lambda x: os.write(1, x if isinstance(x, bytes) else x.encode())\n"
_READY += "say('[\"ready\",0]\\n')\nsys.stdin.readline()\n"

_END = "\ntime.sleep(60)"


def engine(program: str) -> Engine:
    """A program that says it is one, without a cage: only what it says is tried here."""
    return Engine(Cage((sys.executable, "-I", "-S", "-c", program), (), "none"), explain)


async def said(program: str, *, ask=nobody, timeout_s: float = 20.0) -> Report:
    files, processes = len(open_files()), descendants()
    worker = await Worker.boot(engine(_READY + program))
    report = Report()
    try:
        async with asyncio.timeout(timeout_s):
            await worker.run(Analysis("1"), Calls(ask, report), report)
    finally:
        await worker.close()
    assert len(open_files()) <= files
    assert descendants() <= processes
    return report


VIOLATIONS = {
    "no JSON": "say('result\\n')",
    "no frame": "say('{}\\n')",
    "an empty one": "say('[]\\n')",
    "an unknown one": 'say(\'["exec","x"]\\n\')',
    "a known one with something else": "say('[\"result\",1]\\n')",
    "more than it holds": 'say(\'["log","a","b"]\\n\')',
    "a truth for a number": 'say(\'["call",true,"getSymbols","[]"]\\n\')',
    "half a line": 'say(\'["result","[0,1]"]\'); sys.exit()',
    "a line without end": "x = b'x' * 2**20\nfor _ in range(100): say(x)",
    "no UTF-8": 'say(b\'["log","\\xff\\xfe"]\\n\')',
    "ready again": "say('[\"ready\",0]\\n')",
    "a call of a number that is not its turn": 'say(\'["call",7,"getSymbols","[]"]\\n\')',
    "a number twice": 'say(\'["call",1,"getSymbols","[]"]\\n\' * 2)',
    "a number below": 'say(\'["call",0,"getSymbols","[]"]\\n\')',
    "a result that is none": 'say(\'["result","{"]\\n\')',
    "a result of another shape": 'say(\'["result","[1]"]\\n\')',
    "a failure of another shape": 'say(\'["failed","runtime","{}"]\\n\')',
    "a failure that holds a list": 'say(\'["failed","runtime","[[]]"]\\n\')',
    "nesting without end": "say('[' * 100000 + '\\n')",
    "more calls than there are": 'say(\'\'.join(f\'["call",{n},"getSymbols","[]"]\\n\' for n in range(1, 200)))',
}


@pytest.mark.parametrize("program", VIOLATIONS.values(), ids=VIOLATIONS.keys())
async def test_whoever_does_not_keep_to_the_protocol_is_ended(program):
    report = await said(program + _END, ask=never)
    assert report.problem is not None
    assert report.problem.kind == "security"
    assert report.value is None


async def test_what_comes_after_the_result_is_not_heard():
    report = await said('say(\'["result","[0,1]"]\\n["log","x"]\\n["result","[0,2]"]\\n\')' + _END)
    assert (report.value, report.console) == (1, [])


async def test_a_console_beyond_the_cap_is_cut():
    report = await said("say('[\"log\",\"' + 'x' * 1000 + '\"]\\n')\n" * 200 + 'say(\'["result","[0,1]"]\\n\')' + _END)
    assert report.value == 1
    assert sum(map(len, report.console)) < 70_000


async def test_arguments_that_are_no_list_are_refused():
    report = await said(
        'say(\'["call",1,"getSymbols","{}"]\\n\'); r = sys.stdin.readline(); '
        "say(json.dumps(['result', json.dumps([0, json.loads(r)[2]])]) + '\\n')" + _END
    )
    assert report.value is False
    assert report.calls["refused"] == 1


async def test_an_engine_that_ends_in_the_middle_of_a_call_ends_the_call():
    cancelled = asyncio.Event()

    async def ask(method, arguments):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    report = await said('say(\'["call",1,"getSymbols","[]"]\\n\'); time.sleep(0.2); os._exit(3)', ask=ask)
    assert report.problem is not None
    assert report.problem.kind == "runtime"
    assert cancelled.is_set()


async def test_an_engine_that_reads_nothing_does_not_fill_our_memory():
    """Replies wait for it, and time ends it."""

    async def ask(method, arguments):
        return b'"' + b"x" * 4_000_000 + b'"'

    calls = 'say(\'\'.join(f\'["call",{n},"getSymbols","[]"]\\n\' for n in range(1, 101)))'
    with pytest.raises(TimeoutError):
        await said(calls + _END, ask=ask, timeout_s=1.0)


@pytest.mark.parametrize(
    "program", ["import sys; sys.exit(3)", "print('hello')", "print('[\"ready\",1]')", "x = 1 / 0"]
)
async def test_what_does_not_become_ready_is_no_worker(program):
    before = descendants()
    with pytest.raises(Unreachable):
        await Worker.boot(engine(program))
    assert descendants() <= before


async def test_an_engine_cannot_name_a_process_of_somebody_else_to_be_watched():
    with pytest.raises(Unreachable):
        await Worker.boot(engine(f"print('[\"ready\",{os.getpid()}]', flush=True)\nimport time; time.sleep(60)"))


async def test_an_engine_that_is_killed_in_a_call_is_told_as_a_failure(run, language):
    async def ask(method, arguments):
        for pid in run.workers.running:
            os.kill(pid, signal.SIGKILL)
        return b"1"

    code = {"typescript": "return await pyth.getSymbols()", "python": "await pyth.get_symbols()"}[language]
    report = await run(code, language, ask=ask)
    assert report.problem is not None
    assert report.problem.name == "EngineError"


async def test_no_engine_outlives_its_server(tmp_path: Path, language):
    """The server is killed in the middle of an endless analysis: a second later nothing of it is there."""
    code = {"typescript": "for (;;) {}", "python": "while True:\n  pass"}[language]
    program = f"""
import asyncio
from quantdeck.settings import Sandbox
from quantdeck.sources.sandbox import Analysis
from quantdeck.sources.sandbox.workers import Workers

async def main():
    workers = Workers(Sandbox(spares=0))
    task = asyncio.ensure_future(workers.run(Analysis({code!r}, {language!r}, 30000), None, full=True))
    while not workers.running:
        await asyncio.sleep(0.01)
    print("running", flush=True)
    await task

asyncio.run(main())
"""
    before = descendants()
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    assert await server.stdout.readline() == b"running\n"
    below = descendants() - before - {server.pid}
    assert below
    server.kill()
    await server.wait()
    async with asyncio.timeout(10):
        while any(map(_is_alive, below)):  # noqa: ASYNC110 - they are not this process's children
            await asyncio.sleep(0.01)


def _is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
