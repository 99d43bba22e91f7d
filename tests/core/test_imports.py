"""What an import may do: read code, and nothing else; and how much code the core may be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quantdeck import core, servers

MOST_LINES = 1000
"""Whoever changes a stage reads the core whole, in one sitting; what only one side looks at goes out (ADR 0020)."""

ALL_SERVERS = ", ".join(f"quantdeck.servers.{name.replace('-', '_')}" for name in servers.NAMES)

AUDIT = """
import sys

touched = []

def watch(event, args):
    if event in ("sqlite3.connect", "socket.connect", "socket.bind", "subprocess.Popen", "os.mkdir", "os.putenv"):
        touched.append((event, str(args)))
    if event == "open" and isinstance(args[2], int) and args[2] & 0o3:
        touched.append((event, str(args[0])))

sys.dont_write_bytecode = True
sys.addaudithook(watch)
import {module}
print(touched)
print(sorted(name for name in sys.modules if name.partition(".")[0] in {unwanted!r}))
"""


def imported(module: str, *unwanted: str) -> tuple[str, str]:
    program = AUDIT.format(module=module, unwanted=unwanted)
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    touched, loaded = told.splitlines()
    return touched, loaded


@pytest.mark.parametrize("module", ["quantdeck.core.call", "quantdeck.dialects.catalog", ALL_SERVERS, "quantdeck.app"])
def test_no_import_writes_a_file_or_opens_a_connection(module):
    assert imported(module)[0] == "[]"


def test_the_core_is_read_in_one_sitting():
    lines = {file.name: len(file.read_text().splitlines()) for file in Path(core.__path__[0]).rglob("*.py")}
    assert sum(lines.values()) <= MOST_LINES, lines


def test_the_core_knows_no_server_no_driver_and_no_mcp():
    drivers = ("sqlite3", "asyncpg", "redis", "nats", "grpc", "httpx2", "mcp", "mcp_types", "starlette", "uvicorn")
    assert imported("quantdeck.core.call", *drivers, "pandas", "polars", "jsonschema_rs")[1] == "[]"


def test_declaring_tools_loads_no_driver():
    drivers = ("asyncpg", "redis", "nats", "grpc", "httpx2", "mcp", "starlette", "pandas", "polars", "jsonschema_rs")
    figures = ("numpy", "talib", "holidays")
    assert imported(ALL_SERVERS, *drivers, *figures)[1] == "[]"
