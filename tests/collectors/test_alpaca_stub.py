"""The stub of Alpaca, asked by Alpaca's own client: what it says is what the client takes for Alpaca."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgpack
import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect

from quantdeck.domain.candles import resampled
from quantdeck.domain.timeframes import TIMEFRAMES
from tests.support.alpaca_stream import ERRORS
from tests.support.alpaca_stub import KEY, SECRET, AlpacaStub, alpaca
from tests.support.bars import at, every, rows, walk

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from alpaca.common.enums import Sort
    from alpaca.common.exceptions import APIError
    from alpaca.data.enums import DataFeed
    from alpaca.data.historical import CryptoHistoricalDataClient, StockHistoricalDataClient
    from alpaca.data.live import CryptoDataStream, StockDataStream
    from alpaca.data.requests import CryptoBarsRequest, StockBarsRequest
    from alpaca.data.timeframe import TimeFrame, TimeFrameUnit

NOON_S = at("2026-01-15T12:00")
NOON = datetime.fromtimestamp(NOON_S, UTC)
MINUTE = TimeFrame(1, TimeFrameUnit.Minute)


@pytest.fixture
def stub() -> Iterator[AlpacaStub]:
    with alpaca() as made:
        yield made


def told(found: Any, symbol: str) -> list[tuple[Any, ...]]:
    return [
        (int(bar.timestamp.timestamp()), bar.open, bar.high, bar.low, bar.close, bar.volume) for bar in found[symbol]
    ]


def stocks(stub: AlpacaStub, secret: str = SECRET) -> StockHistoricalDataClient:
    client = StockHistoricalDataClient(KEY, secret, url_override=stub.data_url)
    client._retry = 0
    return client


# REST.


def test_pages_of_several_symbols_come_to_all_their_bars(stub):
    bars = {name: walk(every(60, NOON_S, 300), seed=seed) for seed, name in enumerate(("AAPL", "BRK.B", "TSLA"))}
    for name, some in bars.items():
        stub.reveal(name, some)
    stub.market.most_per_page = 123
    asked = StockBarsRequest(symbol_or_symbols=[*bars, "NONE"], timeframe=MINUTE, start=NOON)
    found: Any = stocks(stub).get_stock_bars(asked)
    assert {name: told(found, name) for name in bars} == {name: rows(some) for name, some in bars.items()}
    assert "NONE" not in found.data
    assert len(stub.market.heard) == 8
    newest = asked.model_copy(update={"limit": 200, "sort": Sort.DESC, "symbol_or_symbols": ["AAPL"]})
    assert told(stocks(stub).get_stock_bars(newest), "AAPL") == rows(bars["AAPL"])[:-201:-1]


@pytest.mark.parametrize("name, amount, unit", [("5m", 5, "Minute"), ("15m", 15, "Minute"), ("1h", 1, "Hour")])
def test_longer_bars_are_those_of_the_minutes(stub, name, amount, unit):
    bars = walk(every(60, NOON_S + 420, 500))
    stub.reveal("BTC/USD", bars)
    stub.market.most_per_page = 3
    client = CryptoHistoricalDataClient(url_override=stub.data_url)
    unit = TimeFrameUnit[unit]
    asked = CryptoBarsRequest(symbol_or_symbols="BTC/USD", timeframe=TimeFrame(amount, unit), start=NOON)
    assert told(client.get_crypto_bars(asked), "BTC/USD") == rows(resampled(bars, TIMEFRAMES[name]))


def test_both_ends_belong_to_a_range_and_without_one_it_is_today(stub):
    stub.reveal("AAPL", walk(every(60, NOON_S, 10)))
    asked = StockBarsRequest(symbol_or_symbols="AAPL", timeframe=MINUTE, start=NOON, end=NOON.replace(minute=3))
    assert len(stocks(stub).get_stock_bars(asked)["AAPL"]) == 4
    today = StockBarsRequest(symbol_or_symbols="AAPL", timeframe=MINUTE)
    found: Any = stocks(stub).get_stock_bars(today)
    assert found.data == {}


def test_its_refusals_are_alpacas(stub):
    stub.reveal("AAPL", walk(every(60, int(time.time()) // 60 * 60 - 3600, 60)))
    recent = StockBarsRequest(
        symbol_or_symbols="AAPL", timeframe=MINUTE, start=datetime.fromtimestamp(time.time() - 3600, UTC),
        end=datetime.now(UTC), feed=DataFeed.SIP,
    )  # fmt: skip
    with pytest.raises(APIError, match="recent SIP") as refused:
        stocks(stub).get_stock_bars(recent)
    assert refused.value.status_code == 403
    cut = stocks(stub).get_stock_bars(recent.model_copy(update={"end": None}))["AAPL"]
    assert 40 <= len(cut) <= 46
    with pytest.raises(APIError, match="forbidden"):
        stocks(stub, "wrong").get_stock_bars(recent)
    with pytest.raises(APIError, match="invalid symbol: B/C"):
        stocks(stub).get_stock_bars(recent.model_copy(update={"symbol_or_symbols": "B/C"}))
    stub.market.left = 0
    with pytest.raises(APIError, match="too many") as refused:
        stocks(stub).get_stock_bars(recent)
    assert refused.value.status_code == 429
    headers = refused.value.response.headers
    assert (headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]) == ("200", "0")
    assert float(headers["x-ratelimit-reset"]) > time.time() - 5


@pytest.mark.parametrize("query", ["limit=0", "limit=10001", "timeframe=60Min", "timeframe=x", "sort=up", "feed=x",
                                   "start=x", "page_token=x", "adjustment=x", "symbols="])  # fmt: skip
def test_a_parameter_that_is_none_is_a_400_with_a_message(stub, query):
    name, _, value = query.partition("=")
    asked = {"symbols": "AAPL", "timeframe": "1Min", name: value}
    keys = {"APCA-API-KEY-ID": KEY, "APCA-API-SECRET-KEY": SECRET}
    answer = httpx2.get(f"{stub.data_url}/v2/stocks/bars", params=asked, headers=keys, trust_env=False)
    assert (answer.status_code, list(answer.json())) == (400, ["message"])


# The stream, by Alpaca's own client.


@pytest.mark.parametrize("kind, path, symbol", [
    (StockDataStream, "/v2/iex", "AAPL"), (CryptoDataStream, "/v1beta3/crypto/us", "BTC/USD"),
])  # fmt: skip
async def test_the_client_hears_bars_and_corrections_and_comes_back_when_it_is_broken_off(stub, kind, path, symbol):
    heard: list[Any] = []

    async def on_bar(bar: Any) -> None:
        heard.append(bar)

    client = kind(KEY, SECRET, url_override=stub.stream_url + path)
    client._reconnect_min_backoff = 0.01
    client.subscribe_bars(on_bar, symbol)
    client.subscribe_updated_bars(on_bar, symbol)
    running = asyncio.create_task(client._run_forever())
    bars = walk(every(60, NOON_S, 4))
    for number, accepted in enumerate((1, 2)):
        while stub.stream.accepted < accepted or symbol not in stub.do(stub.stream.subscribed):  # noqa: ASYNC110 - on another thread
            await asyncio.sleep(0.01)
        stub.reveal(symbol, bars[number : number + 1], asked=False)
        stub.reveal(symbol, bars[number + 2 : number + 3], kind="u", asked=False)
        while len(heard) < 2 * accepted:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.01)
        stub.do(stub.stream.drop)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await client.close()
    closes = {symbol: [bar.close for bar in heard]}
    assert closes == {symbol: [float(bars.close[place]) for place in (0, 2, 1, 3)]}
    assert all(bar.timestamp.tzinfo is not None for bar in heard)


# The stream, frame by frame.


class Wire:
    def __init__(self, connection: ClientConnection, *, packed: bool) -> None:
        self.connection = connection
        self.packed = packed

    async def say(self, **message: Any) -> None:
        await self.connection.send(msgpack.packb(message) if self.packed else orjson.dumps(message).decode())

    async def hear(self) -> Any:
        frame = await self.connection.recv()
        return msgpack.unpackb(frame) if self.packed else orjson.loads(frame)

    async def enter(self) -> None:
        assert await self.hear() == [{"T": "success", "msg": "connected"}]
        await self.say(action="auth", key=KEY, secret=SECRET)
        assert await self.hear() == [{"T": "success", "msg": "authenticated"}]


def wire(stub: AlpacaStub, *, packed: bool, path: str = "/v2/iex", **headers: str) -> Any:
    told = {"Content-Type": "application/msgpack", **headers} if packed else headers
    return connect(stub.stream_url + path, additional_headers=told)


@pytest.mark.parametrize("packed", [False, True], ids=["json", "msgpack"])
async def test_each_encoding_says_the_same(stub, packed):
    async with wire(stub, packed=packed) as connection:
        it = Wire(connection, packed=packed)
        await it.enter()
        await it.say(action="subscribe", bars=["AAPL", "MSFT"], updatedBars=["AAPL"])
        (answer,) = await it.hear()
        assert (answer["T"], answer["bars"], answer["updatedBars"], answer["trades"]) == (
            "subscription", ["AAPL", "MSFT"], ["AAPL"], [],
        )  # fmt: skip
        await it.say(action="unsubscribe", bars=["MSFT"])
        assert (await it.hear())[0]["bars"] == ["AAPL"]
        stub.reveal("MSFT", walk([NOON_S]))
        stub.reveal("AAPL", walk([NOON_S]))
        (bar,) = await it.hear()
        assert (bar["T"], bar["S"], set(bar)) == ("b", "AAPL", set("TStohlcvn") | {"vw"})
        assert bar["t"] == (msgpack.Timestamp(NOON_S, 0) if packed else "2026-01-15T12:00:00Z")
        for message, code in (({"action": "auth", "key": KEY}, 403), ({"action": "dance"}, 400), ({"bars": []}, 400)):
            await it.say(**message)
            assert await it.hear() == [{"T": "error", "code": code, "msg": ERRORS[code]}]


async def test_who_is_not_let_in_is_told_why(stub):
    cases: list[tuple[dict[str, Any], int]] = [
        ({"action": "auth", "key": KEY, "secret": "wrong"}, 402),
        ({"action": "subscribe", "bars": ["*"]}, 401),
    ]
    for message, code in cases:
        async with wire(stub, packed=False) as connection:
            it = Wire(connection, packed=False)
            await it.hear()
            await it.say(**message)
            assert (await it.hear())[0]["code"] == code
    async with wire(stub, packed=False, path="/v2/sip") as connection:
        it = Wire(connection, packed=False)
        await it.hear()
        await it.say(action="auth", key=KEY, secret=SECRET)
        assert (await it.hear())[0]["code"] == 409


async def test_keys_may_be_in_the_headers_and_a_second_connection_is_one_too_many(stub):
    keys = {"APCA-API-KEY-ID": KEY, "APCA-API-SECRET-KEY": SECRET}
    async with wire(stub, packed=False, **keys) as first:
        it = Wire(first, packed=False)
        assert [(await it.hear())[0]["msg"] for _ in range(2)] == ["connected", "authenticated"]
        async with wire(stub, packed=False, **keys) as second:
            other = Wire(second, packed=False)
            await other.hear()
            assert (await other.hear())[0]["code"] == 406
    assert stub.stream.most_connected == 2


async def test_who_does_not_show_keys_in_time_is_told_so():
    with alpaca(auth_s=0.05) as stub:
        async with wire(stub, packed=False) as connection:
            it = Wire(connection, packed=False)
            await it.hear()
            assert (await it.hear())[0]["code"] == 404


async def test_too_many_symbols_leave_the_subscription_as_it_was():
    with alpaca(most_symbols=2) as stub:
        async with wire(stub, packed=True) as connection:
            it = Wire(connection, packed=True)
            await it.enter()
            await it.say(action="subscribe", bars=["AAPL"])
            await it.hear()
            await it.say(action="subscribe", bars=["MSFT", "TSLA"])
            assert (await it.hear())[0]["code"] == 405
            await it.say(action="subscribe", bars=["MSFT"])
            assert (await it.hear())[0]["bars"] == ["AAPL", "MSFT"]
