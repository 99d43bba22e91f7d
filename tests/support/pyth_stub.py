"""Both of Pyth Pro's services on one port, as they answer in 2026: shapes, units, refusals and silences.

Their traits, which tests rely on: plain-text errors; integers as strings here and as numbers there, some beyond 2^53;
nulls and absences; a feed that is not live is left out without a word; one feed that a key does not cover refuses the
whole batch; the list of feeds never refuses a key; bare pairs are unknown. What else should go wrong is queued in
`failing`. Only one trait is a choice: whether the history wants a key (`history_needs_key`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import orjson

from tests.support.http_stub import Answer, HttpStub, Request
from tests.support.hunt import MARK, look

__all__ = ["FEEDS", "KEY", "NOBODYS", "PARTLY", "TRIAL", "PythStub", "feed"]

KEY, PARTLY = f"a-key-that-covers-everything-{MARK}", f"a-key-that-covers-crypto-only-{MARK}"
"""Tokens that the stub knows."""
NOBODYS, TRIAL = f"a-token-nobody-knows-{MARK}", f"a-token-for-trial-{MARK}"
"""Tokens that it does not know, unless it is told to."""

CHANNELS = {"real_time": 1, "fixed_rate@50ms": 2, "fixed_rate@200ms": 3, "fixed_rate@1000ms": 4}
_STEPS_US = {"real_time": 1, "fixed_rate@50ms": 50_000, "fixed_rate@200ms": 200_000, "fixed_rate@1000ms": 1_000_000}
_SPEED = {name: place for place, name in enumerate(CHANNELS)}
PROPERTIES = (
    "price", "bestBidPrice", "bestAskPrice", "publisherCount", "exponent", "confidence", "fundingRate",
    "fundingTimestamp", "fundingRateInterval", "marketSession", "emaPrice", "emaConfidence", "feedUpdateTimestamp",
)  # fmt: skip
_STRINGS = frozenset(("price", "bestBidPrice", "bestAskPrice", "emaPrice"))
_STEPS_S = {"1": 60, "2": 120, "5": 300, "15": 900, "30": 1800, "60": 3600, "120": 7200, "240": 14_400, "360": 21_600,
            "720": 43_200, "D": 86_400, "W": 604_800, "M": 2_592_000}  # fmt: skip

ALWAYS = "America/New_York;O,O,O,O,O,O,O;"
NEW_YORK = "America/New_York;0930-1600,0930-1600,0930-1600,0930-1600,0930-1600,C,C;1225/C,1224/0930-1300"
CURRENCIES = "America/New_York;O,O,O,O,0000-1700,C,1700-2400;1225/C"


def feed(number: int, symbol: str, description: str, **more: Any) -> dict[str, Any]:
    """One row of the list of feeds, complete as the service has it."""
    tail = symbol.rpartition(".")[2]
    schedule = more.get("schedule", ALWAYS)
    return {
        "pyth_lazer_id": number, "name": tail.replace("/", ""), "symbol": symbol, "description": description,
        "asset_type": "crypto", "instrument_type": "spot", "exponent": -8, "cmc_id": None, "interval": None,
        "min_publishers": 3, "min_channel": "fixed_rate@200ms", "state": "stable", "schedule": schedule,
        "market_session_schedule": {"regular": schedule},
        "market_sessions": {"regular": {"min_pub": 3, "schedule": schedule, "state": "stable"}},
        "hermes_id": None, "nasdaq_symbol": None, "quote_currency": tail.partition("/")[2] or None, "groups": [],
        **more,
    }  # fmt: skip


def _equity(number: int, ticker: str, description: str) -> dict[str, Any]:
    sessions = {
        "regular": {"min_pub": 3, "schedule": NEW_YORK, "state": "stable"},
        "pre_market": {"min_pub": None, "schedule": NEW_YORK.replace("0930-1600", "0400-0930"), "state": "stable"},
        "over_night": None,
    }
    return feed(
        number, f"Equity.US.{ticker}/USD", description, asset_type="equity", exponent=-5, schedule=NEW_YORK,
        min_channel="fixed_rate@50ms", market_sessions=sessions,
    )  # fmt: skip


FEEDS: tuple[dict[str, Any], ...] = (
    feed(1, "Crypto.BTC/USD", "BITCOIN / US DOLLAR", min_channel="real_time", cmc_id=1,
         hermes_id="e62df6c8b4a85fe1a67db44dc12de5db330f7ac66b72dc658afedf0f4a415b43"),
    feed(2, "Crypto.ETH/USD", "ETHEREUM / US DOLLAR", min_channel="real_time"),
    feed(6, "Crypto.SOL/USD", "SOLANA / US DOLLAR", min_channel="real_time"),
    feed(112, "FundingRate.Binance.BTC/USDT", "FUNDING RATE BTC / USDT ON BINANCE", asset_type="funding-rate",
         exponent=-12, interval="8h", instrument_type="perp"),
    feed(327, "FX.EUR/USD", "EURO / US DOLLAR", asset_type="fx", exponent=-5, schedule=CURRENCIES),
    feed(3183, "FX.Index.EUR/USD", "EURO / US DOLLAR INDEX", asset_type="fx", exponent=-5, instrument_type="index"),
    feed(344, "Commodities.WTI/USD", "WEST TEXAS OIL", asset_type="commodity", state="inactive"),
    feed(346, "Metal.XAU/USD", "GOLD / US DOLLAR", asset_type="metal", exponent=-3, schedule=CURRENCIES),
    _equity(922, "AAPL", "APPLE INC / US DOLLAR"),
    _equity(1435, "TSLA", "TESLA INC / US DOLLAR"),
    feed(1792, "Crypto.AAPLX/USD", "APPLE XSTOCK / US DOLLAR"),
    feed(3063, "Commodities.Index.PYTHOIL/USD", "PYTH OIL INDEX", asset_type="commodity", groups=["pyth-indices"],
         instrument_type="index", min_channel="fixed_rate@1000ms"),
    feed(3253, "InterestRate.3MSZ6", "SOFR FUTURE DECEMBER 2026", asset_type="interest-rate", quote_currency="POINTS",
         expiration_time="2026-12-15T13:30:00-05:00", symbol_chain_id="SR3", instrument_type="future"),
    feed(3304, "Crypto.Index.SILV/USD", "SILVER INDEX", asset_type="crypto-index", instrument_type=""),
    feed(4001, "Crypto.SOON/USD", "COMING SOON", state="coming_soon"),
    feed(4002, "Crypto.DUO/USD", "DUO OF ONE HOUSE"),
    feed(4003, "Crypto.Other.DUO/USD", "DUO OF ANOTHER"),
    feed(4004, "Crypto.ODD/USD", "A STATE AND A KIND FROM THE FUTURE", state="paused", asset_type="perpetual-swap"),
)  # fmt: skip

_CRYPTO = frozenset({"crypto"})


@dataclass
class PythStub:
    """See the module. `url` is both services' base."""

    feeds: Sequence[Any] = FEEDS
    history_needs_key: bool = False
    covered: dict[str, frozenset[str] | None] = field(
        default_factory=lambda: {KEY: None, PARTLY: frozenset({"crypto"})}
    )
    failing: list[Answer | None] = field(default_factory=list)
    """What the next requests are answered instead, one each; None breaks the connection off in its middle."""
    on_path: str = ""  # only requests to a path with this in it are failed
    at_us: int = 1_778_594_100_000_000  # the router's present
    lag_us: dict[int, int] = field(default_factory=dict)  # how much older a feed's own price is
    silent: frozenset[int] = frozenset()  # feeds without data
    pro_only: frozenset[int] = frozenset()  # feeds that the list has for those alone whose key covers them
    described: Mapping[str, Any] = field(default_factory=dict)  # what the services' documents say beside their titles
    candles: Callable[[str, int, int, str], dict[str, Any]] | None = None
    rows: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: row
    stalled: asyncio.Event | None = None  # set it to let requests go on
    arrived: asyncio.Event = field(default_factory=asyncio.Event)  # set once there was a request
    http: HttpStub = field(init=False)

    def __post_init__(self) -> None:
        self.http = HttpStub(self.answer)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[PythStub]:
        async with self.http.serving():
            yield self

    @property
    def url(self) -> str:
        return self.http.url

    @property
    def asked(self) -> list[str]:
        """The paths of what was asked so far, decoded."""
        return [unquote(request.path) for request in self.http.heard]

    def last(self, path: str) -> Request:
        """The newest request whose path has this in it."""
        return next(request for request in reversed(self.http.heard) if path in unquote(request.path))

    async def answer(self, request: Request) -> Answer | None:
        path = unquote(request.path)
        look("an address or a body that Pyth was sent", path, request.values, request.body)
        self.arrived.set()
        if self.stalled is not None and self.on_path in path:
            await self.stalled.wait()
        if self.failing and self.on_path in path:
            return self.failing.pop(0)
        known = {"/v1/symbols": self._symbols, "/v1/live": _live,
                 "/v1/latest_price": self._router, "/v1/price": self._router}  # fmt: skip
        if path in known:
            return known[path](request)
        if path.endswith("openapi.json"):
            said = {"openapi": "3.1.0", "info": {"title": path, "version": "1"}, "paths": {}, **self.described}
            return 200, orjson.dumps(said)
        parts = path.removeprefix("/v1/").split("/")
        if len(parts) == 2 and parts[0] in CHANNELS:
            return self._history(request, *parts)
        return _said(404, "")

    # the history

    def _key(self, request: Request) -> str | None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        return key if scheme == "Bearer" else None

    def _symbols(self, request: Request) -> Answer:
        key = self._key(request)
        if request.query.get("entitled_only") == "true":
            return 200, orjson.dumps([row for row in self.feeds if key in self.covered and self._covers(key, row)])
        return 200, orjson.dumps([row for row in self.feeds if self._lists(key, row)])

    def _lists(self, key: str | None, row: Any) -> bool:
        return not _is_row(row) or row["pyth_lazer_id"] not in self.pro_only or self._covers(key, row)

    def _history(self, request: Request, channel: str, what: str) -> Answer:
        key = self._key(request)
        if what == "config":
            return 200, orjson.dumps({"supported_resolutions": list(_STEPS_S), "supports_search": True})
        if what == "symbols":
            return self._chart(request, channel)
        if (self.history_needs_key and key is None) or (key is not None and key not in self.covered):
            return _said(401, "")
        if what == "history":
            return self._candles(request, channel)
        return self._prices(request, channel) if what == "price" else _said(404, "")

    def _prices(self, request: Request, channel: str) -> Answer:
        ids = [int(one) for given in request.values.get("ids", []) for one in given.split(",")]
        at_us = int(request.query["timestamp"])
        if at_us % _STEPS_US[channel]:
            return _said(400, "timestamp is not a multiple of the channel's interval")
        found = [self._by_id(number) for number in ids]
        for number, row in zip(ids, found, strict=True):
            if row is None:
                return _said(404, "")
            if self.history_needs_key and not self._covers(self._key(request), row):
                return self._not_entitled(number, row)
            if row["state"] in ("beta", "coming_soon"):
                return _said(400, f"not ready. Currently in {row['state']} state")
        rows = [self._row(row, at_us) for row in found if row and row["pyth_lazer_id"] not in self.silent]
        told = [
            {"price_feed_id": row["priceFeedId"], "publish_time": at_us, "channel": CHANNELS[channel],
             "channel_name": channel, **{_snake(name): row.get(name) for name in PROPERTIES}}
            for row in rows
        ]  # fmt: skip
        return 200, orjson.dumps(told)

    def _charted(self, request: Request, channel: str) -> dict[str, Any] | None:
        asked = request.query["symbol"].lower()
        row = next((row for row in self.feeds if _is_row(row) and row["symbol"].lower() == asked), None)
        return row if row and _SPEED[channel] >= _SPEED[row["min_channel"]] else None

    def _chart(self, request: Request, channel: str) -> Answer:
        row = self._charted(request, channel)
        if row is None:
            return _said(404, "symbol not found.")
        return 200, orjson.dumps({"name": row["symbol"], "ticker": row["symbol"], "type": row["asset_type"]})

    def _candles(self, request: Request, channel: str) -> Answer:
        row = self._charted(request, channel)
        if row is None:
            return _said(404, "symbol not found.")
        if self.history_needs_key and not self._covers(self._key(request), row):
            return self._not_entitled(row["pyth_lazer_id"], row)
        begin, end = int(request.query["from"]), int(request.query["to"])
        made = self.candles or _candles
        return 200, orjson.dumps(made(row["symbol"], begin, end, request.query["resolution"]))

    # the router

    def _router(self, request: Request) -> Answer:
        key = self._key(request)
        if key not in self.covered:
            return _said(401, "")
        body = orjson.loads(request.body)
        at_us = self.at_us
        if request.path.endswith("/price"):
            at_us = body["timestamp"]
            if not isinstance(at_us, int) or at_us % _STEPS_US.get(body.get("channel"), 1):
                return _said(400, "timestamp is no multiple of the channel's interval in microseconds")
        by_symbol = {row["symbol"]: row["pyth_lazer_id"] for row in self.feeds if _is_row(row)}
        unknown = [f"Unknown symbol: {name}" for name in body.get("symbols", ()) if name not in by_symbol]
        if problems := [problem for problem in (_problem(body), *unknown) if problem]:
            return _said(400, problems[0])
        return self._update(body, key, by_symbol, at_us)

    def _update(self, body: Mapping[str, Any], key: str | None, by_symbol: Mapping[str, int], at_us: int) -> Answer:
        ids = body.get("priceFeedIds") or [by_symbol[name] for name in body["symbols"]]
        told = []
        for number in ids:
            row = self._by_id(number)
            if row is None:
                return _said(403, f"Unknown feed: {number}")
            if not self._covers(key, row):
                return self._not_entitled(number, row)
            if _SPEED[body["channel"]] < _SPEED[row["min_channel"]]:
                return _said(400, f"Price feed id {number} is not available for channel {body['channel']}")
            if row["state"] == "stable" and number not in self.silent:
                made = self._row(row, at_us)
                wanted = {name: made[name] for name in made if name in body["properties"]}
                strings = {name: str(held) for name, held in wanted.items() if name in _STRINGS}
                told.append({"priceFeedId": number, **wanted, **strings})
        answer: dict[str, Any] = {"parsed": {"timestampUs": str(at_us), "priceFeeds": told}}
        for form in body["formats"]:
            answer[form] = {"encoding": "base64", "data": "AAAA"}
        return 200, orjson.dumps(answer)

    # what both share

    def _by_id(self, number: int) -> dict[str, Any] | None:
        return next((row for row in self.feeds if _is_row(row) and row["pyth_lazer_id"] == number), None)

    def _covers(self, key: str | None, row: Mapping[str, Any]) -> bool:
        kinds = self.covered.get(key or "", frozenset())
        return kinds is None or row["asset_type"] in kinds

    def _not_entitled(self, number: int, row: Mapping[str, Any]) -> Answer:
        kind = f"asset type '{row['asset_type']}', instrument type '{row['instrument_type']}'"
        return _said(403, f"Not entitled: feed {number} (no grant accepts this feed ({kind}))")

    def _row(self, row: Mapping[str, Any], at_us: int) -> dict[str, Any]:
        """All that there is of a feed at a time, as numbers; what it has no value of is absent."""
        number, updated_us = row["pyth_lazer_id"], at_us - self.lag_us.get(row["pyth_lazer_id"], 0)
        session = {"marketSession": "regular", "feedUpdateTimestamp": updated_us}
        if row["asset_type"] == "funding-rate":
            mark = {"price": 80_813_667_608_700_001, "publisherCount": 3, "exponent": row["exponent"]}
            rate = {
                "fundingRate": 38_770_000,
                "fundingTimestamp": at_us - 273_475,
                "fundingRateInterval": 28_800_000_000,
            }
            return self.rows({"priceFeedId": number, **mark, **rate, **session})
        price = 8_063_953_748_222 if number == 1 else 22_767_696 + number
        return self.rows({
            "priceFeedId": number, "price": price, "bestBidPrice": price - 26_201_157, "bestAskPrice": price + 564_536,
            "publisherCount": 16, "exponent": row["exponent"], "confidence": 1_783_407, "emaPrice": price + 7,
            "emaConfidence": 1_946_443, **session,
        })  # fmt: skip


def _live(request: Request) -> Answer:
    del request
    return 200, b"OK"


def _problem(body: Mapping[str, Any]) -> str:
    ids, symbols = body.get("priceFeedIds"), body.get("symbols")
    if (ids is None) == (symbols is None):
        return "exactly one of priceFeedIds and symbols must be given"
    lists = {"ids": ids if ids is not None else symbols, "properties": body.get("properties")}
    for name, given in lists.items():
        if not given or len(set(given)) < len(given):
            return f"{name}: none, or one of them twice"
    if unknown := set(body["properties"]) - set(PROPERTIES):
        return f"unknown property {min(unknown)}"
    if "formats" not in body:
        return "missing field formats"
    return "" if body.get("channel") in CHANNELS else "unknown channel"


def _candles(symbol: str, begin: int, end: int, resolution: str) -> dict[str, Any]:
    """Of a market that never closes."""
    del symbol
    step = _STEPS_S[resolution]
    times = list(range(-(-begin // step) * step, end + 1, step))
    if not times:
        return {"s": "no_data"}
    return {
        "s": "ok", "t": times, "o": [100.0 + t % 7 for t in times], "h": [110.5] * len(times),
        "l": [99.25] * len(times), "c": [101.0 + t % 5 for t in times], "v": [0] * len(times),
    }  # fmt: skip


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("pyth_lazer_id"), int) and isinstance(row.get("symbol"), str)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _said(status: int, text: str) -> Answer:
    return status, text.encode(), {"content-type": "text/plain; charset=utf-8"}
