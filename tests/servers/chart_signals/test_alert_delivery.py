"""Alerts of bars that another process stores: the program itself, over stdio and HTTP, in both eras."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from quantdeck.connections.databases import Databases
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import MINUTE
from quantdeck.settings import Settings
from quantdeck.sources.candles import parquet
from tests.servers.chart_signals.conftest import NOON_S, of_closes
from tests.support.over_http import ENVELOPE, PLAIN, Session, modern, modern_headers
from tests.support.serving import QUANTDECK, serving

BEGINS_S = NOON_S - 60 * 60
FALLING = np.linspace(200, 190, 45)
WANTED = {
    "symbol": "AAPL",
    "timeframe": "1min",
    "conditions": [{"type": "ema_cross", "direction": "up"}, {"type": "rsi_oversold"}],
    "throttle_ms": 5000,
}
PATIENCE_S = 20


async def store(home: Path, bars: Bars, symbol: str = "AAPL") -> None:
    """As a collector does it, which is another process than the one that serves."""
    settings = Settings(home=home)
    candles = parquet.connect("parquet:", settings, Databases(settings))
    try:
        await candles.write(symbol, MINUTE, bars)
    finally:
        await candles.close()


async def store_crossing(home: Path) -> None:
    await store(home, of_closes([201.0], BEGINS_S + 45 * 60))


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    await store(tmp_path, of_closes(FALLING, BEGINS_S))
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    noon = datetime.fromtimestamp(NOON_S, UTC).isoformat()
    said = {"QUANTDECK_HOME": str(home), "QUANTDECK_CLOCK": noon, "QUANTDECK_ALERTS__LOOK_EVERY_S": "0.05"}
    return {**{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}, **said}


class Lines:
    """The program over stdio, in bare lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout
        self.heard: list[dict[str, Any]] = []

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, **({} if number is None else {"id": number}), "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")

    async def until(self, wanted: Any) -> dict[str, Any]:
        """The next message that is wanted; those before it are kept."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for message in self.heard:
                    if wanted(message):
                        self.heard.remove(message)
                        return message
                self.heard.append(json.loads(await self.stdout.readline()))

    async def ask(self, method: str, number: int, **params: Any) -> Any:
        self.send(method, number, **params)
        answer = await self.until(lambda message: message.get("id") == number and "method" not in message)
        return answer["result"]

    async def notified(self, method: str) -> Any:
        return (await self.until(lambda message: message.get("method") == method))["params"]


@asynccontextmanager
async def program(home: Path) -> AsyncIterator[Lines]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "quantdeck", "serve", "chart-signals", env=environment(home),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield Lines(process)
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def shake_hands(lines: Lines) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    await lines.ask("initialize", 0, **hello)
    lines.send("notifications/initialized")


CROSSED = (datetime.fromtimestamp(BEGINS_S, UTC) + timedelta(minutes=46)).isoformat()


async def test_a_legacy_session_gets_the_specs_notification_too(home):
    async with program(home) as lines:
        await shake_hands(lines)
        made = (await lines.ask("tools/call", 1, name="subscribe_alerts", arguments=WANTED))["structuredContent"]
        uri = made["resource"]
        assert uri == f"chart-signals://alerts/{made['subscription_id']}"
        await lines.ask("resources/subscribe", 2, uri=uri)
        await store_crossing(home)
        assert (await lines.notified("notifications/resources/updated"))["uri"] == uri
        alert = await lines.notified("signals.alert")
        assert alert.pop("source") == "parquet"
        assert list(alert) == ["subscription_id", "symbol", "timeframe", "triggered", "snapshot", "timestamp"]
        assert list(alert["snapshot"]) == ["price", "macd", "signal", "rsi"]
        assert alert["subscription_id"] == made["subscription_id"]
        assert (alert["symbol"], alert["timeframe"], alert["triggered"]) == ("AAPL", "1min", ["ema_reclaim"])
        assert (alert["snapshot"]["price"], alert["timestamp"]) == (201, CROSSED)
        (read,) = (await lines.ask("resources/read", 3, uri=uri))["contents"]
        ring = json.loads(read["text"])
        assert ring["alerts"] == [{**alert, "source": "parquet"}]
        listed = (await lines.ask("tools/call", 4, name="list_alerts", arguments={}))["structuredContent"]
        assert listed["alerts"] == ring["alerts"]
        assert [one["subscription_id"] for one in listed["subscriptions"]] == [made["subscription_id"]]
        assert lines.heard == [], "each is told once"


async def test_the_specs_own_method_subscribes_as_well(home):
    async with program(home) as lines:
        await shake_hands(lines)
        made = await lines.ask("subscribe_alerts", 1, **WANTED)
        assert made["subscription_id"].startswith("sub_")
        assert made["throttle_ms"] == 5000
        await store_crossing(home)
        assert (await lines.notified("signals.alert"))["subscription_id"] == made["subscription_id"]
        lines.send("subscribe_alerts", 2, symbol="?", timeframe="1min", conditions=[])
        refused = await lines.until(lambda message: message.get("id") == 2)
        assert refused["error"]["code"] == -32002
        lines.send("get_signals", 3, symbol="AAPL", timeframe="1min")
        assert (await lines.until(lambda message: message.get("id") == 3))["error"]["code"] == -32601


async def test_a_modern_stream_hears_of_it_and_no_notification_of_the_spec(home):
    async with program(home) as lines:
        call = {"name": "subscribe_alerts", "arguments": WANTED, "_meta": ENVELOPE}
        uri = (await lines.ask("tools/call", 1, **call))["structuredContent"]["resource"]
        lines.send("subscriptions/listen", 2, notifications={"resourceSubscriptions": [uri]}, _meta=ENVELOPE)
        await lines.notified("notifications/subscriptions/acknowledged")
        await store_crossing(home)
        assert (await lines.notified("notifications/resources/updated"))["uri"] == uri
        (read,) = (await lines.ask("resources/read", 3, uri=uri, _meta=ENVELOPE))["contents"]
        assert [alert["triggered"] for alert in json.loads(read["text"])["alerts"]] == [["ema_reclaim"]]
        assert [message.get("method") for message in lines.heard] == []
        made = await lines.ask("subscribe_alerts", 4, **WANTED, _meta=ENVELOPE)
        assert (made["resource"], made["resultType"]) == (uri, "complete")


async def test_over_http_both_eras_hear_of_it(home):
    command = [QUANTDECK, "serve", "--http", "--port", "0", "chart-signals"]
    with serving(command, environment(home)) as address:
        async with httpx2.AsyncClient(
            base_url=address.removesuffix("/mcp"), trust_env=False, timeout=PATIENCE_S
        ) as http:
            await _heard_over_http(http, home)


async def _heard_over_http(http: httpx2.AsyncClient, home: Path) -> None:
    session = await Session(http).open()
    called = {"name": "subscribe_alerts", "arguments": WANTED}
    made = await session.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called})
    uri = made.json()["result"]["structuredContent"]["resource"]
    wanted = {"notifications": {"resourceSubscriptions": [uri]}}
    listen = modern({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": wanted})
    pushing = {name: value for name, value in session.headers.items() if name not in PLAIN}
    pushing |= {"accept": "text/event-stream"}
    async with (
        asyncio.timeout(PATIENCE_S),
        http.stream("GET", "/mcp", headers=pushing) as pushed,
        http.stream("POST", "/mcp", json=listen, headers=modern_headers(listen)) as listened,
    ):
        told = await session.post({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}})
        assert told.status_code == 200
        events = [line async for line in _until(listened, "acknowledged")]
        await store_crossing(home)
        events += [line async for line in _until(listened, "resources/updated")]
        assert uri in events[-1]
        pushes = "".join([line async for line in _until(pushed, "signals.alert")])
        assert uri in pushes
        assert '"ema_reclaim"' in pushes


async def _until(stream: httpx2.Response, wanted: str) -> AsyncIterator[str]:
    lines = stream.extensions.setdefault("lines", stream.aiter_lines())
    async for line in lines:
        yield line
        if wanted in line:
            return
