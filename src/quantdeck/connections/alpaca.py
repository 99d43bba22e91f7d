"""Alpaca's past bars over HTTP: pages of them, for any number of stocks or of coins at once.

The keys are sent as two headers and nowhere else: never in a URL, never on to another address, never into an error.
What Alpaca says of a failure is its own; it is shortened, and cleared of the keys, before it is told on. Its own client
is not used for this: it has no timeouts, sleeps through refusals, and brings pandas, which no server may load.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from quantdeck.core.errors import Busy, Denied, NotConfigured, QueryFailed, SourceError, Unreachable
from quantdeck.domain.candles import Bars
from quantdeck.domain.watchlist import is_crypto
from quantdeck.settings import Alpaca as Settings

if TYPE_CHECKING:
    import httpx2

__all__ = ["PAGE", "SOURCE", "AlpacaApi", "Question", "Refused", "TooRecent", "keys"]

SOURCE = "alpaca"
PAGE = 10_000
"""Bars in one answer at most, all symbols together."""

_MAX_REASON = 300
_LARGE = 200_000
"""Bytes of an answer that is read on a thread."""
_AGAIN = frozenset((429, 500, 502, 503, 504))
_PAUSE_S = 0.3

_NO_KEYS = (
    "Alpaca is not configured: set ALPACA_API_KEY and ALPACA_SECRET_KEY (https://alpaca.markets has them, free of "
    "charge; a paper account's will do)"
)


class TooRecent(Denied):
    """The plan does not cover the last quarter of an hour of all exchanges."""


class Refused(QueryFailed):
    """Alpaca does not take what it was asked, and says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """Bars of symbols that are all stocks or all coins, from the start to before the end; without one, to now."""

    symbols: tuple[str, ...]
    start_s: int
    end_s: int | None = None
    timeframe: str = "1Min"
    newest_first: bool = False
    limit: int = PAGE


def keys(settings: Settings) -> tuple[str, str]:
    """The key and its secret. Raises NotConfigured where one is missing, Denied where no header can hold it.

    An HTTP library would put such a value into its exception, and so into a log.
    """
    told = settings.api_key.get_secret_value().strip(), settings.secret_key.get_secret_value().strip()
    if not all(told):
        raise NotConfigured(_NO_KEYS, source=SOURCE, setting="QUANTDECK_ALPACA__API_KEY")
    if not all(key.isascii() and key.isprintable() and " " not in key for key in told):
        raise _denied()
    return told


class AlpacaApi:
    """Asked over a few connections that are kept. Nothing is connected before the first question.

    `patience_s` is how long a refusal for asking too often is sat out; one that lasts longer is told.
    """

    def __init__(self, settings: Settings, *, patience_s: float = 5) -> None:
        self._settings = settings
        self._patience_s = patience_s
        self._client: httpx2.AsyncClient | None = None

    async def pages(self, question: Question) -> AsyncIterator[dict[str, Bars]]:
        """What there is, page by page: by symbol, then by time. Who has no bars is in none."""
        path, query = _address(question, self._settings.feed)
        headers = self._headers(question)
        while True:
            body = await self._asked(path, query, headers)
            told, token = await asyncio.to_thread(_read, body) if len(body) > _LARGE else _read(body)
            yield told
            if token is None:
                return
            query = {**query, "page_token": token}

    async def ping(self) -> None:
        """Return if it takes the keys."""
        keys(self._settings)
        async for _ in self.pages(Question(("AAPL",), int(time.time()) - 86_400, int(time.time()) - 3600, limit=1)):
            return

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()

    def _headers(self, question: Question) -> dict[str, str]:
        """The keys; coins are free to ask for without."""
        try:
            key, secret = keys(self._settings)
        except NotConfigured:
            if is_crypto(question.symbols[0]):
                return {}
            raise
        return {"apca-api-key-id": key, "apca-api-secret-key": secret}

    async def _asked(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        failed: SourceError
        for last in (False, True):
            pause_s = _PAUSE_S
            try:
                status, said, body = await self._once(path, query, headers)
                if status == 200:
                    return body
                failed = _failure(status, body, headers)
                if status == 429:
                    pause_s = _seconds(said)
                    failed.details["retry_after_s"] = round(pause_s, 1)
                if status not in _AGAIN or pause_s > self._patience_s:
                    break
            except Unreachable as error:
                failed = error
            if not last:
                await asyncio.sleep(pause_s * (1 + random.random() * 0.4))  # noqa: S311 - it spreads retries
        raise failed

    async def _once(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        import httpx2

        client = self._opened()
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                answer = await client.get(path, params=dict(query), headers=dict(headers))
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise Unreachable("The connection to Alpaca timed out; try again.", source=SOURCE) from _nameless(error)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable(
                "No connection to Alpaca: it is down or out of reach; try again later.", source=SOURCE
            ) from _nameless(error)
        return answer.status_code, answer.headers, answer.content

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            # At debug it writes down the headers of answers, which are others' and may repeat a key.
            logging.getLogger("httpcore2").setLevel(logging.INFO)
            count = self._settings.connections
            self._client = httpx2.AsyncClient(
                base_url=self._settings.data_url,
                timeout=self._settings.timeout_s,
                limits=httpx2.Limits(max_connections=count, max_keepalive_connections=count),
                follow_redirects=False,  # keys go where they were meant to go
                trust_env=False,  # no credentials of a .netrc, and no proxy that nobody chose
            )
        return self._client


def _address(question: Question, feed: str) -> tuple[str, dict[str, str]]:
    query = {
        "symbols": ",".join(question.symbols),
        "timeframe": question.timeframe,
        "start": _instant(question.start_s),
        "limit": str(min(question.limit, PAGE)),
        "sort": "desc" if question.newest_first else "asc",
    }
    if question.end_s is not None:
        query["end"] = _instant(question.end_s - 1)  # which belongs to the range there
    if is_crypto(question.symbols[0]):
        return "/v1beta3/crypto/us/bars", query
    # Raw: an adjusted bar knows of a split that came after it.
    return "/v2/stocks/bars", {**query, "feed": feed, "adjustment": "raw"}


def _instant(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read(body: bytes) -> tuple[dict[str, Bars], str | None]:
    try:
        told = orjson.loads(body)
        found = {symbol: _bars(rows) for symbol, rows in (told["bars"] or {}).items() if rows}
        token = told.get("next_page_token")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreachable("Alpaca's answer cannot be read; try again later.", source=SOURCE) from error
    return found, str(token) if token else None


def _bars(rows: Sequence[Mapping[str, Any]]) -> Bars:
    time = [int(datetime.fromisoformat(row["t"]).timestamp()) for row in rows]
    return Bars.of(time, *([row[name] for row in rows] for name in "ohlcv"))


def _seconds(said: Mapping[str, str]) -> float:
    """How long to wait before asking again: what `Retry-After` says, or until the minute that is counted is over."""
    after, reset = said.get("retry-after", ""), said.get("x-ratelimit-reset", "")
    if after.strip().isdigit():
        return float(after)
    if reset.strip().isdigit():
        return min(max(float(reset) - time.time(), 0.0), 60.0)
    return 3.0


def _nameless(error: Exception) -> Exception:
    """The kind of a failure without its words, which may hold what was sent."""
    return RuntimeError(type(error).__name__)


def _failure(status: int, body: bytes, sent: Mapping[str, str]) -> SourceError:
    reason = _reason(body, sent)
    error: SourceError
    if status == 403 and "recent sip" in reason.lower():
        error = TooRecent(
            "Alpaca's plan does not cover the last 15 minutes of all exchanges; QUANTDECK_ALPACA__FEED=iex does not "
            "need it to",
            source=SOURCE,
        )
    elif status in (401, 403):
        error = _denied()
    elif status == 429:
        error = Busy("Alpaca takes no more questions for now; wait a little and try again.", source=SOURCE)
    elif status in (400, 422):
        error = Refused(f"Alpaca refused the question as invalid: {reason or 'it does not say why'}", source=SOURCE)
    elif status < 500:
        error = QueryFailed(
            f"Alpaca has no such address (status {status}); QUANTDECK_ALPACA__DATA_URL says where it is", source=SOURCE
        )
    else:
        error = Unreachable(f"The connection to Alpaca failed there (status {status}); try again later.", source=SOURCE)
    error.__cause__ = RuntimeError(f"{status}: {reason}")
    return error


def _denied() -> Denied:
    return Denied(
        "Alpaca refused the key; look at ALPACA_API_KEY and ALPACA_SECRET_KEY, which are made anew with every reset of "
        "a paper account",
        source=SOURCE,
    )


def _reason(body: bytes, sent: Mapping[str, str]) -> str:
    text = body[: 16 * _MAX_REASON].decode("utf-8", "replace")
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    else:
        text = str(told.get("message", "")) if isinstance(told, dict) else ""
    for secret in sent.values():
        text = text.replace(secret, "[key]")
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:_MAX_REASON]
