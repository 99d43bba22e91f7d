"""market-data-mcp over a real InfluxDB that others fill, that goes away and comes back; and over a slow one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from quantdeck.servers import load
from quantdeck.settings import InfluxDB
from tests.servers.conftest import Served
from tests.servers.market_data_mcp.conftest import fill
from tests.support import influxdb
from tests.support.bars import at, every, walk
from tests.support.http_stub import Answer, HttpStub, Request

NOON_S = at("2026-01-15T12:00")
TOOLS = ("get_candles", "get_current_price", "get_volatility")
FRESH = {"symbol": "BTC/USD", "force_refresh": True}


@pytest.fixture
def server() -> Iterator[influxdb.InfluxServer]:
    """One of our own, since it is stopped."""
    server = influxdb.InfluxServer(influxdb.program())
    server.start()
    yield server
    server.remove()


@pytest.fixture
async def market(serve: Callable[..., Any], server: influxdb.InfluxServer) -> Served:
    served: Served = await serve("market-data-mcp", influxdb=InfluxDB(url=server.url, bucket=server.new_bucket()))
    await fill(served, "BTC/USD", walk(every(60, NOON_S - 30 * 3600, 1800)))
    return served


@pytest.mark.services
async def test_while_it_is_down_every_tool_says_so_and_afterwards_the_next_call_works(market, server):
    for tool in TOOLS:
        assert "data" in await market(tool, **FRESH)
    with server.stopped():
        for tool in TOOLS:
            code, message = await market.refused(tool, **FRESH)
            assert (code, "onnection" in message) == ("DATABASE_ERROR", True)
            assert str(server.port) not in message
        listed = await market.client.list_tools()
        assert [tool.name for tool in listed.tools] == [tool.listed for tool in load("market-data-mcp").tools]
    for tool in TOOLS:
        assert "data" in await market(tool, **FRESH)


@pytest.mark.services
async def test_a_kept_answer_is_given_while_it_is_down(market, server):
    kept = await market("get_candles", symbol="BTC/USD")
    with server.stopped():
        assert (await market("get_candles", symbol="BTC/USD"))["data"] == kept["data"]


@pytest.mark.services
async def test_down_at_the_start_is_no_different(serve, server):
    where = InfluxDB(url=server.url, bucket=server.new_bucket())
    with server.stopped():
        served: Served = await serve("market-data-mcp", influxdb=where)
        assert (await served.refused("get_candles", **FRESH))[0] == "DATABASE_ERROR"
    assert (await served.refused("get_candles", **FRESH))[0] == "NO_DATA"


@pytest.mark.services
@pytest.mark.parametrize("separator, tag", [("/", "BTC/USD"), ("-", "BTC-USD"), ("", "BTCUSD"), ("_", "BTC_USD")])
async def test_what_tradestream_wrote_is_read_as_it_stands(serve, separator, tag):
    server = influxdb.available()
    bucket = server.new_bucket()
    lines = [
        f"candles,currency_pair={tag} open=1,high=3,low=0.5,close={number},volume=2 {NOON_S - 60 * (20 * 60 - number)}"
        for number in range(20 * 60)
    ]
    server.write(bucket, *lines)
    served: Served = await serve(
        "market-data-mcp", influxdb=InfluxDB(url=server.url, bucket=bucket, separator=separator)
    )
    page = (await served("get_candles", symbol="btcusd", timeframe="4h"))["data"]
    assert [(bar["timestamp"], bar["close"], bar["volume"]) for bar in page["items"]] == [
        ("2026-01-14T16:00:00Z", 239.0, 480.0),
        ("2026-01-14T20:00:00Z", 479.0, 480.0),
        ("2026-01-15T00:00:00Z", 719.0, 480.0),
        ("2026-01-15T04:00:00Z", 959.0, 480.0),
        ("2026-01-15T08:00:00Z", 1199.0, 480.0),
    ]
    price = (await served("get_current_price", symbol="BTC/USD"))["data"]
    assert (price["price"], price["timestamp"]) == (1199.0, "2026-01-15T11:59:00Z")
    assert "data" in await served("get_volatility", symbol="BTC-USD")


@pytest.mark.services
async def test_a_point_that_lacks_a_figure_is_no_bar_and_hides_none(serve):
    server = influxdb.available()
    bucket = server.new_bucket()
    server.write(
        bucket,
        *(
            f"candles,currency_pair=BTC/USD open=1,high=3,low=0.5,close={number}"
            f"{'' if number == 195 else ',volume=2'} {NOON_S - 60 * (200 - number)}"
            for number in range(200)
        ),
    )
    served: Served = await serve("market-data-mcp", influxdb=InfluxDB(url=server.url, bucket=bucket))
    page = (await served("get_candles", symbol="BTC/USD", timeframe="1m", limit=10))["data"]["items"]
    assert [bar["close"] for bar in page] == [189, 190, 191, 192, 193, 194, 196, 197, 198, 199]


@pytest.mark.services
async def test_a_page_a_long_way_back_is_the_right_one(serve):
    server = influxdb.available()
    where = InfluxDB(url=server.url, bucket=server.new_bucket())
    served: Served = await serve("market-data-mcp", influxdb=where)
    bars = walk(every(60, NOON_S - 60 * 21_000, 21_000))
    await fill(served, "BTC/USD", bars)
    for offset in (9_999, 10_000, 20_950, 21_000):
        page = (await served("get_candles", symbol="BTC/USD", timeframe="1m", offset=offset))["data"]
        end = 21_000 - offset
        assert [bar["close"] for bar in page["items"]] == bars.close[max(end - 100, 0) : end].tolist()
        assert page["pagination"]["has_more"] is (end > 100)


async def test_one_that_does_not_answer_is_given_up(serve):
    async def answer(_: Request) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    async with HttpStub(answer).serving() as stub:
        served: Served = await serve("market-data-mcp", influxdb=InfluxDB(url=stub.url, bucket="b", read_s=0.05))
        for tool in TOOLS:
            code, message = await served.refused(tool, **FRESH)
            assert (code, "timed out" in message) == ("DATABASE_ERROR", True)


async def test_the_deadline_of_a_tool_holds_where_it_is_the_shorter(serve):
    async def answer(_: Request) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    async with HttpStub(answer).serving() as stub:
        where = InfluxDB(url=stub.url, bucket="b")
        served: Served = await serve("market-data-mcp", influxdb=where, deadline_s={"get_candles": 0.05})
        assert (await served.refused("get_candles", **FRESH))[0] == "TIMEOUT"


@pytest.mark.parametrize(
    "status, told",
    [
        (200, {"results": [{"statement_id": 0, "error": "shard 7 at /srv/secret is gone"}]}),
        (401, {"message": "unauthorized: /srv/secret"}),
        (500, {"error": "panic at /srv/secret"}),
    ],
)
async def test_what_it_says_itself_reaches_nobody(serve, status, told):
    async def answer(_: Request) -> Answer:
        return status, orjson.dumps(told)

    async with HttpStub(answer).serving() as stub:
        served: Served = await serve("market-data-mcp", influxdb=InfluxDB(url=stub.url, bucket="b"))
        body = await served("get_candles", **FRESH)
        assert body["error"]["code"] == "DATABASE_ERROR"
        assert "secret" not in json.dumps(body)


@pytest.mark.services
async def test_every_question_is_bounded_in_time(serve):
    """A bucket of years must not be read through for a page."""
    server = influxdb.available()
    bucket = server.new_bucket()
    heard: list[str] = []

    async def passed_on(request: Request) -> Answer:
        heard.append(request.form["q"])
        parameters = orjson.loads(request.form["params"])
        said = await asyncio.to_thread(server.pass_on, request.form["q"], bucket, parameters)
        return 200, said

    async with HttpStub(passed_on).serving() as stub:
        served: Served = await serve("market-data-mcp", influxdb=InfluxDB(url=stub.url, bucket=bucket))
        server.write(bucket, *(f"candles,currency_pair=BTC/USD open=1,high=1,low=1,close=1,volume=1 {at_s}"
                               for at_s in every(60, NOON_S - 30 * 3600, 1800)))  # fmt: skip
        for tool in TOOLS:
            assert "data" in await served(tool, **FRESH)
    assert heard
    for question in heard:
        statements = question.split("; ")
        assert all("time >= " in statement for statement in statements), question
