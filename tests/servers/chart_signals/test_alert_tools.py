"""The tools of alerts, through a client, while the server's own task looks for new bars."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import orjson
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from quantdeck.app import running
from quantdeck.core.call import Caller
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.settings import Alerts
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.watchers import Watchers
from tests.servers.chart_signals.conftest import NOON_S, Chart, closing_at, of_closes
from tests.support.held import Held

FALLING = np.linspace(200, 190, 45)
EMA_UP = {"type": "ema_cross", "direction": "up"}
OFTEN = Alerts(look_every_s=0.01)
PATIENCE_S = 20


@pytest.fixture
async def watched(chart_at: Any) -> Any:
    """The server at noon with its background task, and a falling AAPL of which the last three minutes are missing."""
    async with Held() as held:

        async def opened(**said: Any) -> Chart:
            chart: Chart = await chart_at(**{"alerts": OFTEN, **said})
            await chart.fill("AAPL", of_closes(FALLING, NOON_S - 48 * 60))
            await held.enter(running(chart.served.app))
            return chart

        yield opened


async def subscribe(
    chart: Chart, *conditions: dict[str, str], symbol: str = "AAPL", timeframe: str = "1min", **more: Any
) -> Any:
    return await chart("subscribe_alerts", symbol=symbol, timeframe=timeframe, conditions=list(conditions), **more)


async def alerts_when(chart: Chart, enough: Callable[[list[Any]], bool], **arguments: Any) -> list[Any]:
    """What list_alerts says once it says enough."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = (await chart("list_alerts", **arguments))["alerts"]
            if enough(found):
                return list(found)
            await asyncio.sleep(0)


async def test_a_subscription_says_what_it_is(watched):
    chart = await watched()
    made = await subscribe(chart, EMA_UP, {"type": "rsi_oversold"}, symbol="aapl", throttle_ms=5000)
    assert made == {
        "subscription_id": made["subscription_id"], "symbol": "AAPL", "timeframe": "1min",
        "conditions": [EMA_UP, {"type": "rsi_oversold"}], "throttle_ms": 5000, "suppressed": 0,
        "resource": f"chart-signals://alerts/{made['subscription_id']}", "expires_in_s": 86_400, "source": "parquet",
    }  # fmt: skip
    listed = await chart("list_alerts")
    assert (listed["subscriptions"], listed["alerts"]) == ([made], [])
    assert await subscribe(chart, EMA_UP, {"type": "rsi_oversold"}, throttle_ms=5000) == made


async def test_alerts_are_raised_once_at_each_new_bar_and_read_newest_first(watched):
    chart = await watched()
    made = await subscribe(chart, {"type": "ema_cross"})
    await chart.fill("AAPL", of_closes([201.0], NOON_S - 3 * 60))
    first = await alerts_when(chart, lambda found: len(found) == 1)
    await chart.fill("AAPL", of_closes([180.0, 179.0], NOON_S - 2 * 60))
    second = await alerts_when(chart, lambda found: len(found) == 2)
    assert [alert["triggered"] for alert in second] == [["ema_support_lost"], ["ema_reclaim"]]
    assert second[1:] == first
    assert (first[0]["timestamp"], first[0]["snapshot"]["price"]) == ("2026-01-15T11:58:00+00:00", 201)
    assert (await chart("list_alerts", limit=1))["alerts"] == second[:1]
    alone = await chart("list_alerts", subscription_id=made["subscription_id"])
    assert alone["alerts"] == second


async def test_a_coarser_bar_counts_once_its_last_minute_is_there(watched):
    """At noon the bucket of 11:55 is over by the clock, and its last minutes are not stored yet."""
    chart = await watched()
    await chart.fill("TSLA", of_closes(np.linspace(200, 190, 5 * 40), NOON_S - 5 * 41 * 60))
    await subscribe(chart, {"type": "ema_cross"}, symbol="TSLA", timeframe="5min")
    await subscribe(chart, {"type": "ema_cross"}, symbol="AAPL")
    await chart.fill("TSLA", of_closes([240.0] * 4, NOON_S - 5 * 60))
    await chart.fill("AAPL", of_closes([201.0], NOON_S - 3 * 60))
    assert [alert["symbol"] for alert in await alerts_when(chart, lambda found: len(found) > 0)] == ["AAPL"]
    await chart.fill("TSLA", of_closes([150.0], NOON_S - 60))
    await chart.fill("AAPL", of_closes([150.0], NOON_S - 60))
    found = await alerts_when(chart, lambda found: len(found) > 1)
    assert [alert["symbol"] for alert in found] == ["AAPL", "AAPL"], "at 150 nothing was reclaimed"
    await chart.fill("TSLA", of_closes([241.0], NOON_S - 60))
    found = await alerts_when(chart, lambda found: len(found) > 2)
    assert {(alert["symbol"], *alert["triggered"]) for alert in found if alert["timeframe"] == "5min"} == {
        ("TSLA", "ema_reclaim")
    }


async def test_no_bar_that_closes_later_is_told_of(watched):
    chart = await watched()
    await subscribe(chart, {"type": "ema_cross"})
    await chart.fill("AAPL", of_closes([250.0], NOON_S))
    await chart.fill("AAPL", of_closes([201.0], NOON_S - 3 * 60))
    found = await alerts_when(chart, lambda found: len(found) > 0)
    assert [alert["snapshot"]["price"] for alert in found] == [201]


async def test_what_cannot_be_read_now_is_looked_at_again(watched, tmp_path):
    chart = await watched()
    await subscribe(chart, EMA_UP)
    (file,) = (tmp_path / "home/data/stocks/1min").glob("AAPL_*.parquet")
    whole = file.read_bytes()
    file.write_bytes(b"torn")
    assert (await chart.refused("get_signals", symbol="AAPL", timeframe="1min"))[0] == -32004
    file.write_bytes(whole)
    await chart.fill("AAPL", of_closes([201.0], NOON_S - 3 * 60))
    assert len(await alerts_when(chart, lambda found: len(found) == 1)) == 1


async def test_an_ended_subscription_is_gone(watched):
    chart = await watched()
    made = await subscribe(chart, EMA_UP)
    gone = {"subscription_id": made["subscription_id"]}
    assert await chart("unsubscribe_alerts", **gone) == {**gone, "unsubscribed": True}
    assert (await chart("list_alerts"))["subscriptions"] == []
    for tool in ("unsubscribe_alerts", "list_alerts"):
        code, message, _ = await chart.refused(tool, **gone)
        assert (code, "not found" in message) == (-32602, True)
    with pytest.raises(MCPError):
        await chart.served.client.read_resource(made["resource"])


async def test_the_resource_is_the_ring(watched):
    chart = await watched(alerts=Alerts(look_every_s=0.01, kept=1))
    made = await subscribe(chart, {"type": "ema_cross"})
    await chart.fill("AAPL", of_closes([201.0, 180.0], NOON_S - 3 * 60))
    await alerts_when(chart, lambda found: len(found) > 0)
    read = await chart.served.client.read_resource(made["resource"])
    ring = orjson.loads(read.contents[0].text)
    assert [alert["triggered"] for alert in ring["alerts"]] == [["ema_support_lost"]]
    assert read.contents[0].mime_type == "application/json"
    (template,) = (await chart.served.client.list_resource_templates()).resource_templates
    assert template.uri_template == "chart-signals://alerts/{subscription_id}"


async def test_a_subscription_is_nobody_elses(chart):
    await chart.fill("AAPL", closing_at(FALLING))
    app = chart.served.app

    async def call(tool: str, caller: str, **arguments: Any) -> Answer | RpcFailure:
        contract = app.tool(tool)
        assert contract is not None
        answer: Answer | RpcFailure = await app.call(contract, arguments, caller=Caller(caller), modern=True)
        return answer

    wanted = {"symbol": "AAPL", "timeframe": "1min", "conditions": [EMA_UP]}
    made = orjson.loads((await call("subscribe_alerts", "alice", **wanted)).encoded)
    mine = {"subscription_id": made["subscription_id"]}
    for tool in ("unsubscribe_alerts", "list_alerts"):
        refused = await call(tool, "bob", **mine)
        assert isinstance(refused, Answer)
        assert (refused.is_error, refused.code) == (True, "-32602")
    assert orjson.loads((await call("list_alerts", "bob")).encoded)["subscriptions"] == []
    assert len(orjson.loads((await call("list_alerts", "alice")).encoded)["subscriptions"]) == 1


WRONG = [
    {"conditions": []},
    {"conditions": [{"type": "golden_cross"}]},
    {"conditions": [{"direction": "up"}]},
    {"conditions": [{"type": "macd_cross", "direction": "sideways"}]},
    {"conditions": [{"type": "rsi_oversold", "direction": "up"}]},
    {"conditions": [{"type": "rsi_oversold", "level": 20}]},
    {"conditions": [EMA_UP] * 10},
    {"conditions": "rsi_oversold"},
    {"throttle_ms": -1},
    {"throttle_ms": 1.5},
    {"throttle_ms": 86_400_001},
    {"every": 5},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
async def test_what_is_asked_for_wrongly_is_refused(chart, wrong):
    await chart.fill("AAPL", closing_at(FALLING))
    wanted = {"symbol": "AAPL", "timeframe": "1min", "conditions": [EMA_UP], **wrong}
    assert (await chart.refused("subscribe_alerts", **wanted))[0] == -32602
    assert (await chart("list_alerts"))["subscriptions"] == []


async def test_symbols_timeframes_and_missing_bars_have_the_specs_codes(chart):
    await chart.fill("AAPL", closing_at(FALLING))
    wanted = {"symbol": "AAPL", "timeframe": "1min", "conditions": [EMA_UP]}
    assert (await chart.refused("subscribe_alerts", **{**wanted, "symbol": "?"}))[0] == -32002
    assert (await chart.refused("subscribe_alerts", **{**wanted, "timeframe": "1day"}))[0] == -32003
    code, message, _ = await chart.refused("subscribe_alerts", **{**wanted, "symbol": "TSLA"})
    assert (code, "ALPACA_API_KEY" in message) == (-32004, True)


async def test_there_is_a_cap(chart_at):
    chart = await chart_at(alerts=Alerts(per_caller=1))
    await chart.fill("AAPL", closing_at(FALLING))
    await subscribe(chart, EMA_UP)
    wanted = {"symbol": "AAPL", "timeframe": "5min", "conditions": [EMA_UP]}
    code, message, data = await chart.refused("subscribe_alerts", **wanted)
    assert (code, data["most"], "unsubscribe_alerts" in message) == (-32602, 1, True)


async def test_nobody_is_watched_for_in_a_call_that_ends(chart):
    """`quantdeck call` runs no background tasks, and subscribing there is harmless."""
    await chart.fill("AAPL", closing_at(FALLING))
    await subscribe(chart, EMA_UP)
    await chart.fill("AAPL", closing_at([201.0]))
    assert (await chart("list_alerts"))["alerts"] == []


async def test_a_client_that_is_gone_costs_nothing(chart_at: Callable[..., Awaitable[Chart]]) -> None:
    chart = await chart_at(alerts=OFTEN)
    await chart.fill("AAPL", of_closes(FALLING, NOON_S - 48 * 60))
    app = chart.served.app
    leaving = mcp_server(app, app.servers, Watchers())
    async with Client(leaving, mode="legacy") as client:
        wanted = {"symbol": "AAPL", "timeframe": "1min", "conditions": [EMA_UP]}
        await client.call_tool("subscribe_alerts", wanted)
    async with running(app):
        await chart.fill("AAPL", of_closes([201.0], NOON_S - 3 * 60))
        assert len(await alerts_when(chart, lambda found: len(found) == 1)) == 1
