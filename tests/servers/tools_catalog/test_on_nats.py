"""The catalog's tools where NATS has positions and quotes, and is told of violations."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from nats.aio.client import Client

from quantdeck.app import running
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE
from quantdeck.sources.candles import Candles
from quantdeck.sources.positions import Positions
from quantdeck.sources.positions.nats import SUBJECT
from tests.support import desk
from tests.support.bars import every
from tests.support.nats import named, own_server
from tests.support.over_http import Served

pytestmark = pytest.mark.services
RISK, QUOTE = "risk.position_limits_check", "execution.sim_quote"
PATIENT = {"deadline_s": {RISK: 20, QUOTE: 20}, "per_minute": {RISK: 0, QUOTE: 0}}
TRADE: dict[str, Any] = {"strategy": "m", "instrument": "EURUSD", "qty": 10, "side": "buy"}
STREAMS = {"connect_s": 10, "read_s": 10}


@pytest.fixture
async def nats():
    with own_server() as server:
        yield server


@pytest.fixture
async def bus(nats):
    client = Client()
    await client.connect(nats.url)
    yield client
    await client.close()


@pytest.fixture
async def server(serving, nats):
    async with serving(nats=nats.url, nats_streams=named(**STREAMS), **PATIENT) as opened:
        await opened.app.databases.migrate()
        database = opened.app.databases.of("desk")
        await desk.add_account(database)
        await desk.add_limits(database, strategy_id="m", max_units=100.0)
        minute = int(datetime.now(UTC).timestamp()) // 60 * 60
        flat = [[1.1] * 100] * 4
        bars = Bars.of(every(60, minute - 6000, 100), *flat, [1.0] * 100)
        await opened.app.runtime.source(Candles).write("EUR/USD", MINUTE, bars)
        yield opened


async def ask(server: Served, tool: str, **said: Any) -> Any:
    return (await server.rest(tool, arguments=said)).json()


async def test_a_fill_that_is_published_changes_the_next_equal_check(server, bus):
    async with running(server.app):
        positions = server.app.runtime.source(Positions)
        first, again = await ask(server, RISK, **TRADE), await ask(server, RISK, **TRADE)
        assert (first["data"]["max_qty"], again["metadata"]["cached"]) == (100.0, True)
        before = await positions.revision()
        fill = {"instrument": "EURUSD", "side": "buy", "qty": 95, "price": 1.1, "mid_price": 1.0999, "fill_id": "one"}
        # Who follows makes the stream, and before that nobody hears; published again it is still one fill.
        async with asyncio.timeout(20):
            while await positions.revision() == before:
                await bus.publish(SUBJECT, orjson.dumps(fill))
                await asyncio.sleep(0.01)
        after = await ask(server, RISK, **TRADE)
        assert (after["metadata"]["cached"], after["data"]["max_qty"]) == (False, 5.0)
        (stored,) = await server.app.databases.of("desk").rows("SELECT fill_id, symbol, size FROM fills")
        assert stored == {"fill_id": "one", "symbol": "EUR/USD", "size": 95.0}


async def test_a_violation_is_published_with_the_correlation_id(server, bus):
    heard = await bus.subscribe("risk.violations")
    await bus.flush()
    body = await server.rest(RISK, {"x-correlation-id": "c-7"}, arguments={**TRADE, "qty": 1000})
    assert body.json()["data"]["allowed"] is False
    message = await heard.next_msg(timeout=20)
    told = orjson.loads(message.data)
    assert message.headers == {"Corr-ID": "c-7"}
    assert set(told) == {"violation_type", "symbol", "message", "severity", "timestamp", "metadata"}
    assert (told["violation_type"], told["metadata"]["strategy"]) == ("max_units", "m")


async def test_a_fresh_quote_is_the_market_and_an_old_or_senseless_one_is_not(server, bus):
    bucket = await bus.jetstream().create_key_value(bucket=server.app.settings.nats_streams.quotes)
    order = {"instrument": "EURUSD", "side": "buy"}

    async def bid(number: int, **quote: Any) -> float:
        await bucket.put("EUR/USD", orjson.dumps(quote))
        now = datetime.now(UTC).isoformat()
        told = await ask(server, QUOTE, **order, qty=number, timestamp=now)
        return float(told["data"]["market_conditions"]["bid_price"])

    now = datetime.now(UTC)
    assert await bid(1, bid=1.2, ask=1.2002, timestamp=now.isoformat()) == pytest.approx(1.2, rel=1e-9)
    for number, quote in enumerate(
        (
            {"bid": 1.2, "ask": 1.1, "timestamp": now.isoformat()},
            {"bid": 1.2, "ask": 1.3, "timestamp": "2020-01-01T00:00:00Z"},
            {"bid": 1.2, "ask": 1.3, "timestamp": "2100-01-01T00:00:00Z"},
            {"bid": "many", "ask": 1.3},
        )
    ):
        assert await bid(2 + number, **quote) < 1.1001


async def test_nats_stopped_is_mcp_003_and_back_without_a_restart(server, nats):
    assert (await ask(server, RISK, **TRADE))["error"] is False
    with nats.stopped():
        codes = {(await ask(server, RISK, **TRADE)).get("code") for _ in range(5)}
        assert "MCP-003" in codes
        assert codes <= {"MCP-003", None}
        denied = await ask(server, RISK, **TRADE, current_positions={"EURUSD": 1000})
        assert denied["code"] == "MCP-003", "the mark of what is held cannot be asked for"
    async with asyncio.timeout(20):
        while (await ask(server, RISK, **TRADE))["error"]:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.02)
