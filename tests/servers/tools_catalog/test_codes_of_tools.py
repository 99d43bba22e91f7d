"""Codes of the tools that compute, by REST and by MCP, and the five steps of the spec's own workflow."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from quantdeck.domain.timeframes import MINUTE
from quantdeck.sources.candles import Candles
from tests.support import desk
from tests.support.bars import every, walk
from tests.support.desk import NOON
from tests.support.over_http import Served

FEATURES, RISK, QUOTE = "features.ohlcv_window", "risk.position_limits_check", "execution.sim_quote"
SET, GET = "storage.shared_state.set", "storage.shared_state.get"
WINDOW: dict[str, Any] = {
    "symbol": "EURUSD", "start": "2026-01-15T10:00:00Z", "end": "2026-01-15T11:00:00Z", "interval": "1m",
    "features": ["sma"],
}  # fmt: skip
TRADE: dict[str, Any] = {"strategy": "m", "instrument": "EURUSD", "qty": 10, "side": "buy", "current_positions": {}}
ORDER: dict[str, Any] = {"instrument": "EURUSD", "side": "buy", "qty": 10, "timestamp": "2026-01-15T11:00:00Z"}
WORKING = {FEATURES: WINDOW, RISK: TRADE, QUOTE: ORDER}


@pytest.fixture(params=["rest", "legacy", "auto"])
def ask(request):
    async def asked(server: Served, tool: str, /, **arguments: Any) -> tuple[str | None, Any]:
        if request.param == "rest":
            body = (await server.rest(tool, arguments=arguments)).json()
            return body.get("code"), body if body["error"] else body["data"]
        async with server.client(request.param) as client:
            result = await client.call_tool(tool, arguments)
            body = orjson.loads(result.content[0].text)  # type: ignore[union-attr]
            return (body["code"] if result.is_error else None), body

    return asked


@pytest.fixture
async def market(serving):
    patient = dict.fromkeys([*WORKING, SET, GET], 20)
    async with serving(clock=NOON.isoformat(), deadline_s=patient, per_minute=dict.fromkeys(WORKING, 0)) as server:
        await server.app.databases.migrate()
        database = server.app.databases.of("desk")
        await desk.add_account(database)
        await desk.add_limits(database, strategy_id="m", max_units=100.0)
        opens = every(60, int(NOON.timestamp()) - 1440 * 60, 1440)
        await server.app.runtime.source(Candles).write("EUR/USD", MINUTE, walk(opens))
        yield server


@pytest.mark.parametrize(
    "tool, said, code, words",
    [
        *((tool, {}, "MCP-001", "invalid arguments") for tool in WORKING),
        (FEATURES, {**WINDOW, "symbol": "eurusd"}, "MCP-001", "invalid arguments"),
        (FEATURES, {**WINDOW, "end": "2020-01-01T00:00:00Z"}, "MCP-001", "later than start"),
        (
            FEATURES,
            {**WINDOW, "start": "2026-01-10T10:00:00Z", "end": "2026-01-10T11:00:00Z"},
            "MCP-010",
            "insufficient",
        ),
        (RISK, {**TRADE, "qty": -1}, "MCP-001", "greater than 0"),
        (RISK, {**TRADE, "strategy": "other"}, "MCP-011", "not configured"),
        (QUOTE, {**ORDER, "order_type": "limit"}, "MCP-001", "limit_price"),
        (QUOTE, {**ORDER, "timestamp": "2020-01-01T00:00:00Z"}, "MCP-003", "backend unavailable"),
        (QUOTE, {**ORDER, "qty": 1e12}, "MCP-012", "insufficient liquidity"),
    ],
    ids=str,
)
async def test_a_failure_has_its_code_and_words(market, ask, tool, said, code, words):
    found, body = await ask(market, tool, **said)
    assert (found, words in body["message"].lower()) == (code, True)


async def test_five_steps_of_a_task(market, ask):
    _, window = await ask(market, FEATURES, **WINDOW)
    place = {"corr_id": "req_1", "key": "analysis.momentum"}
    assert (await ask(market, SET, **place, value=window["stats"]))[0] is None
    _, checked = await ask(market, RISK, **TRADE)
    assert (checked["allowed"], checked["max_qty"]) == (True, 100)
    _, quote = await ask(market, QUOTE, **ORDER)
    assert quote["expected_price"] > 0
    _, found = await ask(market, GET, **place)
    assert found["value"] == window["stats"]


@pytest.mark.parametrize("tool", WORKING)
async def test_a_store_of_bars_that_is_gone_is_mcp_003(serving, ask, tool):
    async with serving(candles="influxdb://127.0.0.1:1/bars", deadline_s={tool: 20}) as server:
        code, body = await ask(server, tool, **WORKING[tool])
        assert (code, "backend unavailable" in body["message"].lower()) == ("MCP-003", True)


@pytest.mark.parametrize("tool", [FEATURES, QUOTE])
async def test_a_slow_answer_is_mcp_004(serving, ask, tool):
    async with serving(candles="influxdb://127.0.0.1:1/bars", deadline_s={tool: 1e-9}) as server:
        assert (await ask(server, tool, **WORKING[tool]))[0] == "MCP-004"


@pytest.mark.parametrize("tool, most", [(FEATURES, 100), (QUOTE, 200), (RISK, 500)])
async def test_the_specs_limit_of_a_minute(serving, tool, most):
    async with serving() as server:
        codes = [(await server.rest(tool, arguments={})).json()["code"] for _ in range(most + 1)]
    assert codes == [*["MCP-001"] * most, "MCP-006"]
