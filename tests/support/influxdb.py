"""A real InfluxDB 1.x for the tests: from the PATH, else from Debian's package, which is unpacked and not installed.

`available()` is the running server, or skips the test. It stops when the session ends.
"""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from tests.support import debian
from tests.support.killable import Killable
from tests.support.ports import free_port
from tests.support.services import missing

__all__ = ["InfluxServer", "available"]

READY_S = 20

_CONFIGURED = """
reporting-disabled = true
bind-address = "127.0.0.1:{backup}"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
  auth-enabled = {guarded}
[logging]
  level = "error"
[monitor]
  store-enabled = false
[continuous_queries]
  enabled = false
"""


class InfluxServer(Killable):
    """A server on loopback. With `guarded`, only its user may ask."""

    user, password = "someone", "p@ss/word"

    def __init__(self, program: Path, *, guarded: bool = False) -> None:
        self._program = program
        self._guarded = guarded
        self._folder = Path(tempfile.mkdtemp(prefix="quantdeck-influxdb-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        said = _CONFIGURED.format(
            folder=self._folder, port=self.port, backup=free_port(), guarded=str(self._guarded).lower()
        )
        configured = self._folder / "influxdb.conf"
        configured.write_text(said)
        command: list[str | Path] = [self._program, "-config", configured]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + READY_S
        while not self._answers():
            if time.monotonic() > until:
                raise RuntimeError("InfluxDB does not start")
            time.sleep(0.01)
        if self._guarded:
            self.ask(f"CREATE USER {self.user} WITH PASSWORD '{self.password}' WITH ALL PRIVILEGES")

    def new_bucket(self) -> str:
        """The name of an empty database."""
        name = f"test_{uuid4().hex}"
        # One file for ten years: with one for a week, tests that span decades would wait for the disk.
        self.ask(f'CREATE DATABASE "{name}" WITH SHARD DURATION 520w')
        return name

    def ask(self, statement: str, bucket: str = "") -> dict[str, Any]:
        """Ask the server past our own code."""
        told: dict[str, Any] = self._post("/query", data={"q": statement, "db": bucket}).json()
        return told

    def pass_on(self, statement: str, bucket: str, values: dict[str, Any]) -> bytes:
        """Ask what somebody else asked, and answer as the server does."""
        asked = {"q": statement, "db": bucket, "epoch": "s", "params": json.dumps(values)}
        return self._post("/query", data=asked).content

    def write(self, bucket: str, *lines: str) -> None:
        """Store points past our own code, times in seconds."""
        self._post("/write", params={"db": bucket, "precision": "s"}, content="\n".join(lines))

    def _post(self, path: str, **sent: Any) -> httpx2.Response:
        auth = (self.user, self.password)
        return httpx2.post(self.url + path, auth=auth, timeout=READY_S, **sent).raise_for_status()

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/ping", timeout=1).is_success
        except httpx2.TransportError:
            return False


@cache
def _server() -> InfluxServer:
    server = InfluxServer(program())
    atexit.register(server.remove)
    server.start()
    return server


def available() -> InfluxServer:
    return _server()


@cache
def program() -> Path:
    """The server's program, or skip the test."""
    if found := shutil.which("influxd"):
        return Path(found)
    place, why_not = debian.unpacked("influxdb")
    if place is None:
        raise missing(f"no InfluxDB: install influxd 1.x, or run the tests on Debian or Ubuntu; {why_not}")
    return place / "usr" / "bin" / "influxd"
