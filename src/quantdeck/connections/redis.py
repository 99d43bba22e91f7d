"""Redis: a few connections that are kept, and Lua scripts that are each one round trip.

Every script reads Redis's own clock, so that replicas whose clocks differ agree on what has expired.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha1
from typing import Any
from urllib.parse import parse_qs, urlsplit

from redis import exceptions as driver
from redis.asyncio.connection import AbstractConnection, Connection, parse_url

from quantdeck.core.errors import Busy, Denied, QueryFailed, SourceError, Unreachable
from quantdeck.settings import MisconfiguredError
from quantdeck.settings import Redis as Settings

__all__ = ["SOURCE", "Redis", "Script"]

SOURCE = "redis"

_URL = "write redis://:password@host:6379/0 (rediss:// for TLS), characters with a meaning in URLs percent-encoded"
_OPTIONS = {"ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs"}


@dataclass(frozen=True)
class Script:
    """A Lua script. Redis knows it by its digest once it has seen it."""

    text: str

    @cached_property
    def digest(self) -> str:
        return sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_PING = Script("return {redis.call('TIME')[1], redis.call('EXISTS', KEYS[1])}")


class Redis:
    """One server, or what stands before several. Nothing is connected before the first question."""

    def __init__(self, url: str, settings: Settings, *, setting: str = "QUANTDECK_STATE") -> None:
        self._how = _how(url, setting)
        self._kind: type[AbstractConnection] = self._how.pop("connection_class", Connection)
        self._settings = settings
        self._turns = asyncio.Semaphore(settings.max_connections)
        self._idle: list[AbstractConnection] = []
        self._closed = False

    async def run(self, script: Script, keys: Sequence[str], *values: str | bytes | int) -> Any:
        """What a script answers. `keys` are named whole, without the prefix of the settings."""
        named = [self._settings.prefix + key for key in keys]
        async with self._connection() as connection, asyncio.timeout(self._settings.read_s):
            try:
                return await _asked(connection, "EVALSHA", script.digest, len(named), *named, *values)
            except driver.NoScriptError:  # Redis was started anew, or is asked this for the first time
                return await _asked(connection, "EVAL", script.text, len(named), *named, *values)

    async def ping(self) -> None:
        """Return if it answers, and lets us run scripts on our keys."""
        await self.run(_PING, ["ping"])

    async def close(self) -> None:
        """Close every connection. There is no way back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().disconnect()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AbstractConnection]:
        """A connection that is as good as can be known before it is used; one that failed is not used again."""
        give_up = time.monotonic() + self._settings.connect_s
        await self._turn()
        try:
            connection = await self._open(give_up)
            try:
                with _in_our_words(sent=True):
                    yield connection
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            self._idle.append(connection)
            if self._closed:
                await self.close()
        finally:
            self._turns.release()

    async def _turn(self) -> None:
        if self._closed:
            raise Unreachable("The connection to Redis was closed.", source=SOURCE)
        if not self._turns.locked():
            await self._turns.acquire()  # at once, so it needs no clock
            return
        try:
            async with asyncio.timeout(self._settings.connect_s):
                await self._turns.acquire()
        except TimeoutError as error:
            limit = self._settings.max_connections
            raise Unreachable(f"No free connection to Redis: all {limit} are in use.", source=SOURCE) from error

    async def _open(self, give_up: float) -> AbstractConnection:
        while self._idle:
            connection = self._idle.pop()
            with contextlib.suppress(driver.ConnectionError):
                if connection.is_connected and not await connection.can_read():  # it would be the end of the stream
                    return connection
            await connection.disconnect(nowait=True)
        # Without times of its own: where it has one it writes by `asyncio.wait_for`, which on Python 3.11 can swallow a
        # cancellation, and a call would outlive its deadline. Without `driver_info` it asks twice less.
        connection = self._kind(
            **self._how, protocol=2, driver_info=None, socket_timeout=None, socket_connect_timeout=None
        )
        with _in_our_words(sent=False):
            try:
                async with asyncio.timeout(max(0.001, give_up - time.monotonic())):
                    await connection.connect()  # type: ignore[no-untyped-call]
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
        return connection


async def _asked(connection: AbstractConnection, *command: str | bytes | int) -> Any:
    try:
        await connection.send_command(*command)
        return await connection.read_response()
    except driver.NoScriptError:
        raise
    except driver.ResponseError as error:
        raise _refused(error) from error


@contextlib.contextmanager
def _in_our_words(*, sent: bool) -> Iterator[None]:
    """`sent` once something was: then nobody knows whether it was done."""
    unknown = {"outcome": "unknown"} if sent else {}
    try:
        yield
    except driver.AuthenticationError as error:
        raise Denied("Redis refused the credentials.", source=SOURCE) from error
    except driver.BusyLoadingError as error:
        raise Busy("Redis is loading its data and busy; try again.", source=SOURCE) from error
    except driver.ResponseError as error:  # while connecting
        raise _refused(error) from error
    except (driver.TimeoutError, TimeoutError) as error:
        raise Unreachable("The connection to Redis timed out.", source=SOURCE, **unknown) from error
    except (driver.RedisError, OSError) as error:
        sentence = "The connection to Redis broke." if sent else "No connection to Redis: it is down or out of reach."
        raise Unreachable(sentence, source=SOURCE, **unknown) from error


def _refused(error: driver.ResponseError) -> SourceError:
    said = str(error)
    if isinstance(error, driver.NoPermissionError) or said.startswith(("NOAUTH", "WRONGPASS", "NOPERM")):
        return Denied("Redis does not let this user do that; its ACL must allow scripts and our keys.", source=SOURCE)
    if isinstance(error, driver.OutOfMemoryError) or "OOM" in said:
        return Busy("Redis is out of memory and busy with what it holds; try again later.", source=SOURCE)
    if isinstance(error, driver.ReadOnlyError) or said.startswith(("READONLY", "MASTERDOWN", "CLUSTERDOWN", "BUSY")):
        return Busy("Redis takes no writes just now: a replica, or busy; try again.", source=SOURCE)
    if said.startswith(("MOVED", "ASK")):
        return QueryFailed("Redis is a cluster of several nodes; name a proxy or a single node.", source=SOURCE)
    return QueryFailed("Redis refused the question.", source=SOURCE)


def _how(url: str, setting: str) -> dict[str, Any]:
    """How to connect, or a MisconfiguredError that does not repeat the URL: there may be a password in it."""
    try:
        parts = urlsplit(url)
        wrong = not parts.hostname or not 0 < (parts.port or 6379) < 65536 or bool(parts.fragment)
        database = parts.path.strip("/")
    except ValueError as error:
        raise MisconfiguredError(f"{setting} cannot be read as a URL; {_URL}") from error
    if wrong or (database and not (database.isascii() and database.isdigit())):
        raise MisconfiguredError(f"{setting} names no server, port and database number; {_URL}")
    if unknown := sorted(parse_qs(parts.query, keep_blank_values=True).keys() - _OPTIONS):
        raise MisconfiguredError(f"{setting} has the option {unknown[0]!r}; known are {', '.join(sorted(_OPTIONS))}")
    return dict(parse_url(url))
