"""A process that serves HTTP: the socket, uvicorn, and how it ends.

The first SIGTERM or SIGINT lets nothing more in, ends the streams and waits for what is being answered; a second one
waits for nothing; a third meets the default.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import math
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from quantdeck.app import open_app
from quantdeck.settings import Http, MisconfiguredError, Settings
from quantdeck.transports.hosts import is_loopback
from quantdeck.transports.slow_clients import ImpatientProtocol
from quantdeck.transports.watchers import Watchers
from quantdeck.transports.web import http_app

if TYPE_CHECKING:
    from quantdeck.core.server import Server

__all__ = ["HttpServer", "bind", "checked_place", "http_app", "serve_http"]

KEEP_ALIVE_S = 65
"""Longer than the minute after which proxies drop an idle connection, so that it is they who do it."""

UNREAD_S = 120
"""How long a client may take none of what was written to it. asyncio would wait for it without end, even to hang up."""

MAX_FILES = 65_536

SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def serve_http(settings: Settings, servers: tuple[Server, ...], *, stateless: bool = False) -> int:
    """Serve until a signal asks to stop; the exit status. Raises MisconfiguredError where it cannot begin."""
    _quiet()
    _as_many_connections_as_we_may()
    async with open_app(settings, servers) as app:
        web = http_app(app, servers, Watchers(), settings, stateless=stateless)
        with bind(settings.http, guarded=web.tokens.required) as listener:
            place = _address(listener)
            names = ", ".join(server.name for server in servers)

            def ready() -> None:
                sys.stderr.write(f"quantdeck: serving {names} on http://{place}/mcp\n")
                sys.stderr.flush()

            await HttpServer(web, settings.http, ready).serve(sockets=[listener])
    return 0


class Closable(Protocol):
    """An ASGI app that lets go of its streams when the server is to end."""

    def close(self) -> None: ...


class HttpServer(uvicorn.Server):
    """uvicorn, ending the way this program does. Its own way dies of the signal, whatever has been answered."""

    def __init__(self, web: Closable, http: Http, on_ready: Callable[[], None]) -> None:
        app: Any = web
        protocol: Any = partial(ImpatientProtocol, arrival_s=http.arrival_s)
        if http.trusted_proxies:
            app = ProxyHeadersMiddleware(app, _proxies(http.trusted_proxies))
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                ws="none",
                lifespan="on",
                loop="none",
                log_config=None,
                access_log=False,
                proxy_headers=False,  # on by default, believing loopback
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=math.ceil(http.drain_s),
            )
        )
        self._web, self._on_ready = web, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._web.close()
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            # Only the main thread of a POSIX system can have these.
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            self._restore()

    def _restore(self) -> None:
        for number in SIGNALS:
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                asyncio.get_running_loop().remove_signal_handler(number)

    def _end(self) -> None:
        if not self.should_exit:
            self.should_exit = True
            return
        self.force_exit = True
        self._restore()
        for task in self.server_state.tasks:
            task.cancel()
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


def _proxies(told: list[str]) -> list[str]:
    """Addresses and networks, or `*`. uvicorn would take a name or a slip for one that never calls."""
    proxies = [proxy.strip() for proxy in told if proxy.strip()]
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy if proxy != "*" else "::")
        except ValueError:
            raise MisconfiguredError(
                f"{proxy!r} is no trusted proxy: name its address, or a network such as 10.0.0.0/8"
            ) from None
    return proxies


def checked_place(http: Http, *, guarded: bool) -> tuple[Any, ...]:
    """Where to bind, resolved. Without a token only loopback: whoever can reach the port can call."""
    where = f"{http.host}:{http.port}"
    if not 0 <= http.port <= 65535:  # the resolver would take it modulo that
        raise MisconfiguredError(f"{http.port} is no port; there are 1 to 65535, and 0 for a free one")
    try:
        found = socket.getaddrinfo(http.host, http.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError) as error:
        raise MisconfiguredError(f"{where} is no address to bind: {getattr(error, 'strerror', error)}") from error
    # IPv4 first: clients who say `localhost` try it in any case.
    place = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    if not guarded and not is_loopback(str(place[4][0])):
        raise MisconfiguredError(
            f"{http.host} can be reached from other machines, and no token is configured: set QUANTDECK_TOKENS to a "
            "token file or AUTH_TOKEN to one token, or bind 127.0.0.1"
        )
    return place


@contextlib.contextmanager
def bind(http: Http, *, guarded: bool) -> Iterator[socket.socket]:
    """The socket to listen on."""
    # asyncio switches Nagle's delay off only where the protocol is named, as it is here.
    family, kind, protocol, _, address = checked_place(http, guarded=guarded)
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_S * 1000)
        try:
            listener.bind(address)
            listener.listen(1024)
        except OSError as error:
            raise MisconfiguredError(_unbindable(f"{http.host}:{http.port}", error)) from error
        yield listener


def _unbindable(where: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use; choose another port with --port, or 0 for a free one"
    return f"{where} cannot be bound: {error.strerror}"


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _quiet() -> None:
    """Their lines for every session, start and stop say nothing that ours do not."""
    for name in ("uvicorn", "mcp"):
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.WARNING, logging.getLogger().level))
    logging.getLogger("asyncio").addFilter(_NotAgain())


class _NotAgain(logging.Filter):
    """Without descriptors left, asyncio says of every connection in the backlog that it cannot be accepted."""

    _said_at = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.getMessage().startswith("socket.accept() out of system resource"):
            return True
        again = record.created - self._said_at < 1
        if not again:
            self._said_at = record.created
        return not again


def _as_many_connections_as_we_may() -> None:
    """Descriptors up to the hard limit; the soft one is low for the sake of programs that use select()."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
