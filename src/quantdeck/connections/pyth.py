"""Pyth Pro's two services over HTTP: one question, one answer, at most one more try.

A token is sent as a bearer and nowhere else: never in a URL, never on to another address, never into an error. What
the services say of a failure is plain text of theirs; it is shortened, and cleared of the token, before it is told on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import orjson

from quantdeck.core.errors import Busy, Denied, QueryFailed, SourceError, Unreachable
from quantdeck.settings import Pyth as Settings

if TYPE_CHECKING:
    import httpx2

__all__ = ["SOURCE", "InvalidToken", "NotEntitled", "PythApi", "Refused", "UnknownFeed", "clean_token"]

SOURCE = "pyth"

MAX_PAUSE_S = 30.0
_JITTER = 0.4
_MAX_REASON = 300
_AGAIN = frozenset((429, 503))

_MISSING = (
    "This tool requires a Pyth Pro access token. Set PYTH_PRO_ACCESS_TOKEN environment variable. "
    "Get a token at https://pyth.network/pricing"
)
_INVALID = "Your Pyth Pro access token is invalid or expired. Check your PYTH_PRO_ACCESS_TOKEN value."
_TIMED_OUT = "Pyth Pro API timed out. Try again or reduce the number of feeds."


class InvalidToken(Denied):
    """The token is missing, or none that the service knows."""

    def __init__(self, *, missing: bool = False) -> None:
        super().__init__(_MISSING if missing else _INVALID, source=SOURCE)


class NotEntitled(Denied):
    """The token is good, and does not cover a feed; `feed_id` where the service names it."""

    def __init__(self, reason: str, feed_id: int | None) -> None:
        told = f"Your Pyth Pro access token does not cover this: {reason}" if reason else (
            "Your Pyth Pro access token does not cover one of these feeds."
        )  # fmt: skip
        super().__init__(told, source=SOURCE, type="entitlement")
        self.reason, self.feed_id = reason, feed_id


class UnknownFeed(QueryFailed):
    """The service has no such feed, or nothing at that time; `feed_id` where it names it."""

    def __init__(self, reason: str = "", feed_id: int | None = None) -> None:
        super().__init__(
            "Feed not found. Use get_symbols to discover available feeds.", source=SOURCE, type="not_found"
        )
        self.reason, self.feed_id = reason, feed_id


class Refused(QueryFailed):
    """The service does not take what it was asked, and says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Pyth Pro refused the request: {reason or 'it does not say why'}", source=SOURCE,
                         type="invalid_input")  # fmt: skip
        self.reason = reason


def clean_token(token: str | None) -> str | None:
    """A token without the blanks around it, None for none. Raises InvalidToken for what no header can hold.

    An HTTP library would put such a value into its exception, and so into a log.
    """
    trimmed = (token or "").strip(" ")
    if not trimmed:
        return None
    if not (trimmed.isascii() and trimmed.isprintable()) or " " in trimmed:
        raise InvalidToken
    return trimmed


class PythApi:
    """Both services over a few connections that are kept. Nothing is connected before the first question."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None
        self._router = settings.router_url
        history = settings.history_url
        self._history = history if history.endswith("/v1") else f"{history}/v1"

    async def history(self, path: str, query: Sequence[tuple[str, str]] = (), *, token: str | None) -> Any:
        """What the history answers to a path below its version; the token is a clean one."""
        return await self._asked("GET", f"{self._history}/{path}", token, params=list(query))

    async def router(self, path: str, body: Any, *, token: str) -> Any:
        """What the router answers to a body."""
        headers = {"content-type": "application/json"}
        return await self._asked("POST", f"{self._router}/{path}", token, content=orjson.dumps(body), headers=headers)

    async def document(self, which: str) -> Any:
        """A service's own description of itself, `rest` or `history`."""
        url = f"{self._router}/docs/openapi.json"
        if which == "history":
            url = f"{self._history.removesuffix('/v1')}/docs/v1/openapi.json"
        return await self._asked("GET", url, None)

    async def live(self) -> None:
        """Return if the history is there."""
        status, _, body = await self._once("GET", f"{self._history}/live", None, {})
        if status >= 400:
            raise _failure(status, body, None)

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()

    async def _asked(self, method: str, url: str, token: str | None, **sent: Any) -> Any:
        try:
            status, said, body = await self._once(method, url, token, sent)
        except Unreachable:
            status, said, body = 0, None, b""
        if not status or status in _AGAIN:
            await asyncio.sleep(self._pause(said))
            status, _, body = await self._once(method, url, token, sent)
        if status != 200:
            raise _failure(status, body, token)
        try:
            return await asyncio.to_thread(_large, body) if len(body) > _LARGE else orjson.loads(body)
        except (ValueError, RecursionError) as error:  # both parsers' own are ValueErrors
            raise Unreachable("Pyth Pro's answer is no JSON; try again later.", source=SOURCE) from error

    async def _once(
        self, method: str, url: str, token: str | None, sent: dict[str, Any]
    ) -> tuple[int, str | None, bytes]:
        """Status, what it says of when to try again, and body, the last byte of which is in time too."""
        import httpx2

        headers = {**sent.get("headers", {}), **({"authorization": f"Bearer {token}"} if token else {})}
        client = self._opened()  # which takes a moment the first time
        try:
            async with (
                asyncio.timeout(self._settings.request_timeout_ms / 1000),
                client.stream(method, url, **{**sent, "headers": headers}) as answer,
            ):
                body = await self._read(answer)
                return answer.status_code, answer.headers.get("retry-after"), body
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise Unreachable(_TIMED_OUT, source=SOURCE, type="timeout") from _nameless(error)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable(
                "No connection to Pyth Pro: it is down or out of reach; try again later.", source=SOURCE
            ) from _nameless(error)

    async def _read(self, answer: httpx2.Response) -> bytes:
        limit = int(self._settings.max_answer_mb * 2**20)
        parts, size = list[bytes](), 0
        async for part in answer.aiter_bytes():
            size += len(part)
            if size > limit:
                raise QueryFailed("Pyth Pro's answer is too large; ask for less.", source=SOURCE)
            parts.append(part)
        return b"".join(parts)

    def _pause(self, said: str | None) -> float:
        """Before the second try: what the service asks for, or about half a second."""
        asked_s = _seconds(said)
        jitter = 1 + random.random() * _JITTER  # noqa: S311 - it spreads retries, and keeps no secret
        return self._settings.retry_s * jitter if asked_s is None else min(asked_s, MAX_PAUSE_S)

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            # At debug it writes down the headers of answers, which are others' and may repeat a token.
            logging.getLogger("httpcore2").setLevel(logging.INFO)
            count = self._settings.connections
            self._client = httpx2.AsyncClient(
                timeout=self._settings.request_timeout_ms / 1000,
                limits=httpx2.Limits(max_connections=count, max_keepalive_connections=count),
                follow_redirects=False,  # a bearer goes where it was meant to go
                trust_env=False,  # no credentials of a .netrc, and no proxy that nobody chose
            )
        return self._client


_LARGE = 500_000
"""Bytes that are parsed on a thread, and by the standard library: orjson would take twelve times as much memory."""


def _large(body: bytes) -> Any:
    return json.loads(body, parse_constant=_no_number)


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _seconds(said: str | None) -> float | None:
    """What `Retry-After` says: seconds, or a date; None where it says nothing that can be read."""
    if said is None:
        return None
    if said.strip().isdigit():
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)


def _nameless(error: Exception) -> Exception:
    """The kind of a failure without its words, which may hold what was sent."""
    return RuntimeError(type(error).__name__)


_NAMED = re.compile(r"feed:? (\d{1,12})", re.IGNORECASE)
_BEARER = re.compile(r"bearer\s+\S+", re.IGNORECASE)


def _failure(status: int, body: bytes, token: str | None) -> SourceError:
    reason = _reason(body, token)
    named = _NAMED.search(reason)
    feed_id = int(named[1]) if named else None
    error: SourceError
    if status == 401:
        error = InvalidToken(missing=token is None)
    elif status == 403:
        error = UnknownFeed(reason, feed_id) if "unknown feed" in reason.lower() else NotEntitled(reason, feed_id)
    elif status == 404:
        error = UnknownFeed(reason)
    elif status in (400, 422):
        error = Refused(reason)
    elif status == 429:
        error = Busy("Pyth Pro takes no more calls for now; wait a little and try again.", source=SOURCE,
                     type="rate_limited")  # fmt: skip
    else:
        error = Unreachable(f"Pyth Pro API failed (status {status}); try again later.", source=SOURCE)
    error.__cause__ = RuntimeError(f"{status}: {reason}")
    return error


def _reason(body: bytes, token: str | None) -> str:
    """What a failure says of itself, in one line; a proxy may have wrapped it in JSON."""
    text = body[: 16 * _MAX_REASON].decode("utf-8", "replace")
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    else:
        if isinstance(told, dict):
            text = str(next((told[name] for name in ("error", "message", "detail") if told.get(name)), ""))
    if token:
        text = text.replace(token, "[token]")
    text = _BEARER.sub("[token]", text)
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:_MAX_REASON]
