"""The hunt for tokens finds them wherever they come out, and nothing where none does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONFTEST = """
from tests.support import hunt

def pytest_configure(config):
    config.pluginmanager.register(hunt)
"""
BEGIN = """
import asyncio, logging, subprocess, sys
import pytest
from mcp.shared.exceptions import MCPError
from quantdeck.core.errors import ErrorCode, Unreachable
from quantdeck.core.wire import Answer
from quantdeck.observability import logs
from tests.support.hunt import MARK

TOKEN = f"a-token-{MARK}"
SAY = [sys.executable, "-c", f"print({TOKEN!r})"]
"""
LEAKS = {
    "out": 'print("x", TOKEN)',
    "err": 'print("x", TOKEN, file=sys.stderr)',
    "log record": 'logging.getLogger("x").warning("who is %s", TOKEN)',
    "log fields": 'logging.getLogger("x").warning("y", extra={"fields": {"why": RuntimeError(TOKEN)}})',
    "log exception": """
    try:
        raise ValueError(TOKEN)
    except ValueError:
        logging.getLogger("x").exception("failed")""",
    "log line": 'logs.LineWriter(2).write({"token": TOKEN})',
    "answer": 'Answer({"a": [TOKEN]}).encoded',
    "meta": 'Answer({}, meta={"a": TOKEN}).encoded',
    "sentence": "Answer({}, text=TOKEN).encoded",
    "source": 'Unreachable(f"no {TOKEN}", source="pyth")',
    "tool": 'ErrorCode("X", "y")("no", token=TOKEN)',
    "rpc": "MCPError(-32602, TOKEN)",
    "process": "subprocess.run(SAY, capture_output=True, check=True)",
    "later": """
    async def ask():
        process = await asyncio.create_subprocess_exec(*SAY, stdout=-1)
        await process.communicate()
    asyncio.run(ask())""",
    "assertion": 'pytest.fail("something else")',
}  # fmt: skip
CLEAN = """
def test_clean():
    print("nothing"); logging.getLogger("x").warning("nothing")
    Answer({"a": 1}).encoded
    Unreachable("no", source="pyth")
    subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True)
    assert TOKEN
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What such a run says of each test."""
    folder = tmp_path_factory.mktemp("hunted")
    (folder / "conftest.py").write_text(CONFTEST)
    tests = [f"def test_{name.replace(' ', '_')}():\n    {leak.strip()}\n" for name, leak in LEAKS.items()]
    (folder / "test_leaks.py").write_text("\n".join([BEGIN, *tests, CLEAN]))
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:randomly", "-p", "no:xdist", "-p",
               "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={folder}", str(folder)]  # fmt: skip
    printed = folder / "printed"
    with printed.open("w") as file:  # and not to us: the hunt that we are in would find it all
        subprocess.run(command, cwd=ROOT, stdout=file, env={**os.environ, "COLUMNS": "200"}, check=False, timeout=50)
    # A process that says something late may have begun a line that pytest goes on with.
    summary = printed.read_text().rpartition("short test summary info")[2]
    found = re.findall(r"(PASSED|FAILED) \S+::(\w+)(.*)", summary)
    return {name: (outcome, said.removeprefix(" ")) for outcome, name, said in found}


@pytest.mark.parametrize("leak", [name for name in LEAKS if name != "assertion"])
def test_a_token_that_comes_out_fails_its_test(told, leak):
    outcome, said = told[f"test_{leak.replace(' ', '_')}"]
    assert outcome == "FAILED"
    assert "a token of Pyth came out" in said


def test_a_test_that_fails_anyway_says_why(told):
    assert told["test_assertion"] == ("FAILED", "- Failed: something else")


def test_where_none_comes_out_none_is_found(told):
    assert told["test_clean"][0] == "PASSED"
