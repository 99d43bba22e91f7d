"""What the stub of Alpaca knows: bars that came to be known, and what its REST answers to questions for them."""

from __future__ import annotations

import base64
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from quantdeck.domain.candles import Bars
from tests.support.http_stub import Answer, Request

__all__ = ["KEY", "SECRET", "Market", "message"]

KEY, SECRET = "PKTESTTESTTESTTEST", "s3cretS3cretS3cretS3cretS3cret"
_RECENT_S = 15 * 60
_TIMEFRAME = re.compile(r"(\d+)(Min|T|Hour|H)")
_STOCK, _COIN = re.compile(r"[A-Z]{1,5}(\.[A-Z])?"), re.compile(r"[A-Z0-9]+/[A-Z0-9]+")
_ADJUSTMENTS = frozenset(("raw", "split", "dividend", "all"))

Row = tuple[float, float, float, float, float]


@dataclass
class Series:
    """Bars of one symbol by their opens, which are kept in order."""

    rows: dict[int, Row] = field(default_factory=dict)
    opens: list[int] = field(default_factory=list)

    def put(self, opened_s: int, row: Row) -> None:
        if opened_s not in self.rows:
            self.opens.insert(bisect_left(self.opens, opened_s), opened_s)
        self.rows[opened_s] = row


@dataclass
class Market:
    """Bars, and how questions for them are answered. `failing` are answers that come first, `plan` is free or paid."""

    plan: str = "free"
    left: int | None = None  # questions of this minute; None for any number
    most_per_page: int = 10_000
    now: Callable[[], float] = time.time
    series: dict[str, Series] = field(default_factory=dict)
    failing: list[Answer | None] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)  # names that look like a stock's and are none
    heard: list[Request] = field(default_factory=list)

    def put(self, symbol: str, bars: Bars) -> None:
        """Bars that are known from now on; one that was there already is corrected."""
        series = self.series.setdefault(symbol, Series())
        for opened_s, *row in zip(*(column.tolist() for column in bars.columns()), strict=True):
            series.put(opened_s, tuple(row))

    def all(self, symbol: str) -> list[tuple[Any, ...]]:
        """As tests write bars down."""
        series = self.series.get(symbol, Series())
        return [(opened_s, *series.rows[opened_s]) for opened_s in series.opens]

    def answer(self, request: Request) -> Answer | None:
        self.heard.append(request)
        if self.failing:
            return self.failing.pop(0)
        coins = request.path == "/v1beta3/crypto/us/bars"
        if not coins and request.path != "/v2/stocks/bars":
            return message(404, "endpoint not found.")
        given = request.headers.get("apca-api-key-id"), request.headers.get("apca-api-secret-key")
        if given != (KEY, SECRET) and not (coins and given == (None, None)):
            return message(403, "forbidden.")
        if self.left is not None:
            if not self.left:
                return self._too_many()
            self.left -= 1
        try:
            return self._bars(request.query, coins=coins)
        except _BadRequest as error:
            return message(400, str(error))

    def _too_many(self) -> Answer:
        reset = str(int(time.time()) + 1)
        headers = {"x-ratelimit-limit": "200", "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
        return (*message(429, "too many requests.")[:2], headers)

    def _bars(self, query: Mapping[str, str], *, coins: bool) -> Answer:
        symbols = sorted(set(_needed(query, "symbols").split(",")))
        for symbol in symbols:
            if not (_COIN if coins else _STOCK).fullmatch(symbol) or symbol in self.refused:
                raise _BadRequest(f"invalid symbol: {symbol}")
        step_s = _step_s(_needed(query, "timeframe"))
        now_s = self.now()
        midnight_s = now_s // 86_400 * 86_400
        start_s = _second(query, "start", midnight_s)
        recent = not coins and query.get("feed") == "sip" and self.plan == "free"
        end_s = _second(query, "end", now_s - (_RECENT_S if recent else 0))
        if recent and end_s > now_s - _RECENT_S:
            return message(403, "subscription does not permit querying recent SIP data")
        _one_of(query, "sort", ("asc", "desc"))
        _one_of(query, "feed", ("iex", "sip", "delayed_sip", "otc", "boats", "overnight"), there=not coins)
        _one_of(query, "adjustment", tuple(_ADJUSTMENTS), there=not coins)
        limit = int(query.get("limit", 1000))
        if not 1 <= limit <= 10_000:
            raise _BadRequest("invalid limit: must be between 1 and 10000")
        page = _Page(symbols, start_s, end_s, step_s, newest_first=query.get("sort") == "desc")
        return 200, orjson.dumps(page.of(self, min(limit, self.most_per_page), query.get("page_token", "")))


class _BadRequest(Exception):
    pass


@dataclass(frozen=True)
class _Page:
    symbols: Sequence[str]
    start_s: float
    end_s: float
    step_s: int
    newest_first: bool

    def of(self, market: Market, limit: int, token: str) -> dict[str, Any]:
        """By symbol, then by time; a token says where the page before ended."""
        at_symbol, at_s = _read_token(token) if token else ("", None)
        told: dict[str, list[dict[str, Any]]] = {}
        left, last = limit, ("", 0)
        for symbol in self.symbols:
            if symbol < at_symbol:
                continue
            rows = self._rows(market.series.get(symbol, Series()), at_s if symbol == at_symbol else None, left + 1)
            if rows and not left:
                return {"bars": told, "next_page_token": _token(*last)}
            if rows:
                told[symbol] = [_row(*row) for row in rows[:left]]
                last = (symbol, rows[: left or 1][-1][0])
            if len(rows) > left:
                return {"bars": told, "next_page_token": _token(*last)}
            left -= len(rows)
        return {"bars": told, "next_page_token": None}

    def _rows(self, series: Series, after_s: int | None, most: int) -> list[tuple[Any, ...]]:
        """The buckets that open in the range, which includes both ends, beyond the one that was last."""
        low, high = bisect_left(series.opens, self.start_s), bisect_right(series.opens, self.end_s)
        made: list[tuple[Any, ...]] = []
        places = range(high - 1, low - 1, -1) if self.newest_first else range(low, high)
        if after_s is not None:
            edge = bisect_left(series.opens, after_s) if self.newest_first else 0
            begin = bisect_left(series.opens, after_s + self.step_s)
            places = range(min(high, edge) - 1, low - 1, -1) if self.newest_first else range(max(low, begin), high)
        for place in places:
            opened_s = series.opens[place]
            bucket_s, row = opened_s // self.step_s * self.step_s, series.rows[opened_s]
            if made and made[-1][0] == bucket_s:
                made[-1] = (bucket_s, *_merged(made[-1][1:], row, later=not self.newest_first))
            elif len(made) == most:
                break
            else:
                made.append((bucket_s, *row))
        return made


def _merged(old: Sequence[float], row: Sequence[float], *, later: bool) -> Row:
    first, last = (old, row) if later else (row, old)
    return first[0], max(old[1], row[1]), min(old[2], row[2]), last[3], old[4] + row[4]


def _row(opened_s: int, *row: float) -> dict[str, Any]:
    at = datetime.fromtimestamp(opened_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"t": at, **dict(zip("ohlcv", row, strict=True)), "n": 7, "vw": (row[0] + row[3]) / 2}


def _token(symbol: str, opened_s: int) -> str:
    return base64.b64encode(f"{symbol}|M|{opened_s}000000000".encode()).decode()


def _read_token(token: str) -> tuple[str, int]:
    try:
        symbol, _, nanoseconds = base64.b64decode(token).decode().split("|")
    except ValueError as error:
        raise _BadRequest("invalid page_token") from error
    return symbol, int(nanoseconds) // 10**9


def _needed(query: Mapping[str, str], name: str) -> str:
    if not query.get(name):
        raise _BadRequest(f"{name} is required")
    return query[name]


def _one_of(query: Mapping[str, str], name: str, known: Sequence[str], *, there: bool = True) -> None:
    if name in query and (not there or query[name] not in known):
        raise _BadRequest(f"invalid {name}: {query[name]}")


def _step_s(timeframe: str) -> int:
    read = _TIMEFRAME.fullmatch(timeframe)
    number, hours = (int(read[1]), read[2][0] == "H") if read else (0, False)
    if not 1 <= number <= (23 if hours else 59):
        raise _BadRequest(f"invalid timeframe: {timeframe}")
    return number * (3600 if hours else 60)


def _second(query: Mapping[str, str], name: str, default: float) -> float:
    if name not in query:
        return default
    try:
        at = datetime.fromisoformat(query[name])
    except ValueError as error:
        raise _BadRequest(f"invalid {name}: {query[name]}") from error
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def message(status: int, text: str) -> tuple[int, bytes]:
    """A failure as Alpaca words it: mostly without a code."""
    return status, orjson.dumps({"message": text})
