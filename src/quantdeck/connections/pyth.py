"""Pyth Pro's two services over HTTP: one question, one answer, at most one more try.

A token is sent as a bearer and nowhere else: never in a URL, never on to another address, never into an error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from quantdeck.connections.pyth_failures import SOURCE, failure
from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.settings import Pyth as Settings

if TYPE_CHECKING:
    import httpcore2

__all__ = ["PythApi"]

MAX_PAUSE_S = 10.0
"""Who would have to wait longer is told so at once: a call has half a minute, and both tries are to fit into it."""
_JITTER = 0.4
_AGAIN = frozenset((429, 503))

_HEADERS = (
    (b"accept", b"application/json"), (b"accept-encoding", b"gzip"), (b"content-type", b"application/json"),
    (b"user-agent", b"quantdeck"),
)  # fmt: skip
_GZIP = 31  # zlib's number for it

_KEPT, _KEPT_S = 4, 30.0
"""Connections that are kept for the next question. The pool goes through all of them, twice in every question."""

_TIMED_OUT = "Pyth Pro API timed out. Try again or reduce the number of feeds."


class PythApi:
    """Both services over a few connections that are kept. Nothing is connected before the first question."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool: httpcore2.AsyncConnectionPool | None = None
        self._most = int(settings.max_answer_mb * 2**20)
        self._by_tls = any(url.startswith("https:") for url in (settings.router_url, settings.history_url))
        self._router = _base(settings.router_url)
        history = _base(settings.history_url)
        self._history = history if history.endswith("/v1") else f"{history}/v1"

    async def history(self, path: str, query: Sequence[tuple[str, str]] = (), *, token: str | None) -> Any:
        """What the history answers to a path below its version; the token is a clean one."""
        said = f"{path}?{urlencode(query)}" if query else path
        return await self._asked("GET", f"{self._history}/{said}", token)

    async def router(self, path: str, body: Any, *, token: str) -> Any:
        """What the router answers to a body."""
        return await self._asked("POST", f"{self._router}/{path}", token, orjson.dumps(body))

    async def document(self, which: str) -> Any:
        """A service's own description of itself, `rest` or `history`."""
        url = f"{self._router}/docs/openapi.json"
        if which == "history":
            url = f"{self._history.removesuffix('/v1')}/docs/v1/openapi.json"
        return await self._asked("GET", url, None)

    async def live(self) -> None:
        """Return if the history is there."""
        status, _, body = await self._once("GET", f"{self._history}/live", None)
        if status >= 400:
            raise failure(status, body, None)

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            await self._pool.aclose()

    async def _asked(self, method: str, url: str, token: str | None, sent: bytes = b"") -> Any:
        try:
            status, said, body = await self._once(method, url, token, sent)
        except Unreachable:
            status, said, body = 0, None, b""
        if not status or (status in _AGAIN and (_seconds(said) or 0) <= MAX_PAUSE_S):
            await asyncio.sleep(self._pause(said))
            status, said, body = await self._once(method, url, token, sent)
        if status != 200:
            raise failure(status, body, token, _seconds(said))
        try:
            return await asyncio.to_thread(_large, body) if len(body) > _LARGE else orjson.loads(body)
        except (ValueError, RecursionError) as error:  # both parsers' own are ValueErrors
            raise Unreachable("Pyth Pro's answer is no JSON; try again later.", source=SOURCE) from error

    async def _once(self, method: str, url: str, token: str | None, sent: bytes = b"") -> tuple[int, str | None, bytes]:
        """Status, what it says of when to try again, and body, the last byte of which is in time too."""
        import httpcore2

        pool = self._opened()  # which takes a moment the first time
        headers = [*_HEADERS, (b"host", _host(url)), (b"content-length", b"%d" % len(sent))]
        if token is not None:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        try:
            request = httpcore2.Request(method, url, headers=headers, content=sent)
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                answer = await pool.handle_async_request(request)
                try:
                    told = {name.lower(): value.decode("latin-1") for name, value in answer.headers}
                    body = await self._read(answer)
                finally:
                    await answer.aclose()
        except TimeoutError as error:
            raise Unreachable(_TIMED_OUT, source=SOURCE, type="timeout") from _nameless(error)
        except (OSError, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise Unreachable(
                "No connection to Pyth Pro: it is down or out of reach; try again later.", source=SOURCE
            ) from _nameless(error)
        return answer.status, told.get(b"retry-after"), self._unpacked(body, told.get(b"content-encoding", ""))

    async def _read(self, answer: httpcore2.Response) -> bytes:
        parts, size = list[bytes](), 0
        async for part in answer.aiter_stream():
            size += len(part)
            if size > self._most:
                raise _too_large()
            parts.append(part)
        return b"".join(parts)

    def _unpacked(self, body: bytes, encoding: str) -> bytes:
        if not body or encoding.strip().lower() != "gzip":
            return body  # nothing else was asked for
        unpacking = zlib.decompressobj(_GZIP)
        try:
            whole = unpacking.decompress(body, self._most + 1)
        except zlib.error as error:
            raise _not_packed() from error
        if len(whole) > self._most:
            raise _too_large()
        if not unpacking.eof:  # what was cut off may still be JSON
            raise _not_packed()
        return whole

    def _pause(self, said: str | None) -> float:
        """Before the second try: what the service asks for, or about half a second."""
        asked_s = _seconds(said)
        jitter = 1 + random.random() * _JITTER  # noqa: S311 - it spreads retries, and keeps no secret
        return self._settings.retry_s * jitter if asked_s is None else asked_s

    def _opened(self) -> httpcore2.AsyncConnectionPool:
        """What httpx2's own client sends with.

        Without the client no redirect is followed, so a bearer goes where it was meant to go; no cookie is kept; and
        nothing of the environment is believed, no proxy and no .netrc.
        """
        if self._pool is None:
            import httpcore2
            import httpx2

            from quantdeck.connections.http_streams import Sockets

            # At debug it writes down the headers of answers, which are others' and may repeat a token.
            logging.getLogger("httpcore2").setLevel(logging.INFO)
            most = self._settings.connections
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=httpx2.create_ssl_context(trust_env=False) if self._by_tls else None,
                max_connections=most,
                max_keepalive_connections=min(most, _KEPT),
                keepalive_expiry=_KEPT_S,
                network_backend=Sockets(),
            )
        return self._pool


def _not_packed() -> Unreachable:
    return Unreachable("Pyth Pro's answer cannot be unpacked; try again later.", source=SOURCE)


def _too_large() -> QueryFailed:
    return QueryFailed("Pyth Pro's answer is too large; ask for less.", source=SOURCE)


@lru_cache(8)
def _base(address: str) -> str:
    """An address as the wire has it: a host of other letters is spelt in those that names are looked up by."""
    import httpx2

    url = httpx2.URL(address)
    return f"{url.scheme}://{url.netloc.decode()}{url.raw_path.decode().rstrip('/')}"


def _host(url: str) -> bytes:
    return url.split("/", 3)[2].encode()


_LARGE = 500_000
"""Bytes that are parsed on a thread, and by the standard library: orjson would take twelve times as much memory."""


_EXACT_DIGITS = 18


def _large(body: bytes) -> Any:
    return json.loads(body, parse_constant=_no_number, parse_int=_integer)


def _integer(digits: str) -> int | float:
    """As orjson reads it: what is beyond 64 bits, and could not be written again, is a float."""
    if len(digits) <= _EXACT_DIGITS:
        return int(digits)
    return orjson.loads(digits)  # type: ignore[no-any-return]


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _seconds(said: str | None) -> float | None:
    """What `Retry-After` says: seconds, or a date; None where it says nothing that can be read."""
    if said is None:
        return None
    if said.isascii() and said.strip().isdigit():
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except (ValueError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)


def _nameless(error: Exception) -> Exception:
    """The kind of a failure without its words, which may hold what was sent."""
    return RuntimeError(type(error).__name__)
