"""The collector's own HTTP, on loopback: subscribe to more, ask how it is, bring a bar by a webhook.

Paths, bodies and answers are those of the chart spec's separate process. A body must say that it is JSON: a web page
can make a browser send anything else to this machine unasked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from quantdeck.collectors.alpaca.collector import Collector
from quantdeck.domain.symbols import UnknownSymbolError, asset_class, instrument
from quantdeck.domain.watchlist import Watchlist, is_crypto
from quantdeck.settings import Http
from quantdeck.transports.asgi import Refused
from quantdeck.transports.hosts import Hosts

__all__ = ["CollectorApp"]

MAX_BODY = 1 << 20

Kind = Literal["auto", "stocks", "crypto"]
Figure = Annotated[float, Field(allow_inf_nan=False)]


class _Bar(BaseModel):
    model_config = ConfigDict(extra="ignore")
    t: Annotated[int, Field(ge=0, lt=253_402_300_800)]
    o: Figure
    h: Figure
    l: Figure  # noqa: E741 - its name on the wire
    c: Figure
    v: Annotated[Figure, Field(ge=0)]


class _Hook(BaseModel):
    model_config = ConfigDict(extra="ignore")
    symbol: str
    tf: Literal["1min", "1m", "1"] = "1min"
    bar: _Bar


class _Symbols(BaseModel):
    model_config = ConfigDict(extra="ignore")
    symbols: list[str]
    asset_type: Kind | None = None


_BODY: TypeAdapter[_Symbols | list[str]] = TypeAdapter(_Symbols | list[str])


class CollectorApp:
    """An ASGI app. `not_collecting` says why nothing is collected, where that is so."""

    def __init__(self, collector: Collector, http: Http, storage: str, not_collecting: str = "") -> None:
        self._collector = collector
        self._storage = storage
        self._not_collecting = not_collecting
        self._hosts = Hosts(http)
        self._turn = asyncio.Lock()
        self._app = Starlette(
            routes=[
                Route("/subscribe", self._guarded(self._subscribe), methods=["POST"]),
                Route("/status", self._guarded(self._status), methods=["GET"]),
                Route("/hook", self._guarded(self._hook), methods=["POST"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def close(self) -> None:
        """Nothing is held open here."""

    def _guarded(self, answer: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            try:
                self._hosts.check(request.scope)
                return JSONResponse(await answer(request))
            except Refused as error:
                return JSONResponse({"detail": error.sentence}, status_code=error.status)

        return guarded

    async def _subscribe(self, request: Request) -> dict[str, list[str]]:
        body = await _body(request, _BODY.validate_json)
        named, kind = (body, None) if isinstance(body, list) else (body.symbols, body.asset_type)
        asked = request.query_params.get("asset_type", kind or "auto")
        if asked not in ("auto", "stocks", "crypto"):
            raise Refused(422, "asset_type must be auto, stocks or crypto")
        symbols, errors = _read(named, asked)
        if self._not_collecting:
            return {"stocks": [], "crypto": [], "errors": [*errors, self._not_collecting]}
        async with self._turn:
            errors += await self._collector.add(symbols)
        taken = Watchlist.of(symbol for symbol in symbols if symbol in self._collector.watchlist.symbols)
        return {"stocks": list(taken.stocks), "crypto": list(taken.crypto), "errors": errors}

    async def _status(self, request: Request) -> dict[str, Any]:
        del request
        collector = self._collector
        stocks, coins = collector.feeds[False], collector.feeds[True]
        return {
            "alpaca_configured": not self._not_collecting,
            "streams": {"stocks_active": stocks.connected, "crypto_active": coins.connected},
            "subscribed": {"stocks": list(stocks.symbols), "crypto": list(coins.symbols)},
            "data_available": collector.available,
            "bar_counts": dict(sorted(collector.memory.counts.items())),
            "storage_path": self._storage,
            "source": collector.store.source,
            "unsaved_bars": len(collector.memory),
            "flushed_at": collector.flushed_at,
        }

    async def _hook(self, request: Request) -> dict[str, bool]:
        said = await _body(request, _Hook.model_validate_json)
        bar = said.bar
        symbols, errors = _read([said.symbol], "any")
        if errors:
            raise Refused(422, errors[0])
        if bar.t % 60 or max(bar.o, bar.l, bar.c) > bar.h or min(bar.o, bar.c) < bar.l:
            raise Refused(
                422, "that is no bar: t is the second at which a minute opens, h the highest price, l the lowest"
            )
        if bar.t > time.time():  # taken, it would say that there is nothing to fetch before it
            raise Refused(422, "that minute has not begun: t is in seconds since 1970, UTC")
        if problems := await self._collector.look_up(symbols):
            raise Refused(422, problems[0])
        self._collector.hear(symbols[0], bar.t, (bar.o, bar.h, bar.l, bar.c, bar.v))
        return {"ok": True}


async def _body(request: Request, read: Callable[[bytes], Any]) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the body must be JSON, and say so: content-type: application/json")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise Refused(413, "the body is too large")
    try:
        return read(bytes(body))
    except ValidationError as error:
        where = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()[:3]]
        raise Refused(422, "; ".join(where)) from error


def _read(named: list[str], kind: str) -> tuple[list[str], list[str]]:
    """Canonical symbols, each once, and what is none with the reason."""
    symbols, errors = list[str](), list[str]()
    for name in named:
        whole = f"{name}/USD" if kind == "crypto" and name.isalnum() and not name.upper().endswith("USD") else name
        try:
            symbol = instrument(whole)
        except UnknownSymbolError as error:
            errors.append(f"{name[:40]!r} {error}")
            continue
        if kind != "any" and asset_class(symbol) not in ("stock", "crypto"):
            errors.append(f"{symbol} is neither a stock nor a coin")
        elif (kind, is_crypto(symbol)) in (("stocks", True), ("crypto", False)):
            errors.append(f"{symbol} is none of {kind}")
        else:
            symbols.append(symbol)
    return list(dict.fromkeys(symbols)), errors
