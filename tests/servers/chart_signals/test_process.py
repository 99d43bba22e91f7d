"""chart-signals as a process: the spec's quick start line by line, and where it may be reached."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import httpx2
import numpy as np
import orjson
import pytest

from tests.servers.chart_signals.conftest import NOON_S, closing_at
from tests.servers.chart_signals.test_alert_delivery import environment, store
from tests.support.over_http import Session, call
from tests.support.program import quantdeck
from tests.support.serving import QUANTDECK, serving

QUICK_START = """\
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check_market_status","arguments":{}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_signals","arguments":{"symbol":"AAPL","timeframe":"1min"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_watchlist","arguments":{}}}
"""


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    await store(tmp_path, closing_at(200 + np.sin(np.arange(600) / 9)))
    return tmp_path


async def test_the_quick_start_of_the_spec_is_answered_line_by_line(home):
    said = {name: value for name, value in environment(home).items() if name.startswith("QUANTDECK")}
    ran = quantdeck("serve", "chart-signals", home=home, stdin=QUICK_START, environment=said)
    assert ran.returncode == 0
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, ran.stdout.splitlines())}
    status, signals, watchlist = (json.loads(answers[number]["content"][0]["text"]) for number in (1, 2, 3))
    assert status["stocks"]["session"] == "premarket"
    assert (signals["ready"], signals["symbol"], signals["snapshot"]["time"][-6:]) == (True, "AAPL", "+00:00")
    prices = {entry["symbol"]: entry["price"] for entry in watchlist["watchlist"]["stocks"]}
    assert prices["AAPL"] == signals["snapshot"]["price"]
    assert len(answers) == 3


async def test_an_empty_home_answers_the_quick_start_with_what_to_set(tmp_path):
    ran = quantdeck("serve", "chart-signals", home=tmp_path, stdin=QUICK_START)
    answers = {answer["id"]: answer for answer in map(json.loads, ran.stdout.splitlines())}
    assert "result" in answers[1]
    for number in (2, 3):
        assert answers[number]["error"]["code"] == -32004
        assert re.search("ALPACA_API_KEY.*QUANTDECK_CANDLES.*quantdeck demo", answers[number]["error"]["message"])


async def test_imported_bars_are_read_without_a_setting(tmp_path):
    rows = ["time,open,high,low,close,volume"]
    rows += [f"{NOON_S - 60 * back},{9 + back % 7},20,1,{9 + back % 7},5" for back in range(60, 0, -1)]
    (tmp_path / "AAPL.csv").write_text("\n".join(rows))
    imported = quantdeck(
        "import", "candles", str(tmp_path / "AAPL.csv"), "--symbol", "AAPL", "--timeframe", "1m", "--time-unit", "s",
        home=tmp_path / "home",
    )  # fmt: skip
    assert imported.returncode == 0, imported.stderr
    found = quantdeck("call", "get_signals", '{"symbol": "AAPL", "timeframe": "1min"}', home=tmp_path / "home")
    assert (found.returncode, orjson.loads(found.stdout)["source"]) == (0, "sqlite")


async def test_over_http_it_is_there_only_where_it_is_named(home):
    env = environment(home)
    with serving([QUANTDECK, "serve", "--http", "--port", "0", "all"], env) as address:
        async with httpx2.AsyncClient(base_url=address.removesuffix("/mcp"), trust_env=False) as http:
            assert (await http.post("/mcp/chart-signals", json=call("get_signals"))).status_code == 404
            refused = await http.post("/mcp/tools/call", json={"name": "check_market_status", "arguments": {}})
            assert refused.status_code == 404
    with serving([QUANTDECK, "serve", "--http", "--port", "0", "market-data-mcp", "chart-signals"], env) as address:
        async with httpx2.AsyncClient(base_url=address.removesuffix("/mcp"), trust_env=False) as http:
            session = await Session(http, "/mcp/chart-signals").open()
            answer = await session.post(call("get_signals", symbol="AAPL", timeframe="1min"))
            assert answer.json()["result"]["structuredContent"]["ready"] is True
            rest = await http.post(
                "/mcp/tools/call", json={"name": "get_signals", "arguments": {"symbol": "?", "timeframe": "1min"}}
            )
            assert rest.status_code == 400


ASKING = """
import asyncio, sys
from quantdeck.app import open_app
from quantdeck.servers import load
from quantdeck.settings import Settings

async def main():
    async with open_app(Settings.read(), (load("chart-signals"),)) as app:
        await app.call(app.tool("get_signals"), {"symbol": "AAPL", "timeframe": "1hour"})
        await app.call(app.tool("get_watchlist"), {})

asyncio.run(main())
assert "duckdb" in sys.modules
print(*sorted({"pandas", "polars", "pyarrow"} & sys.modules.keys()))
"""


async def test_reading_files_loads_no_pandas(home):
    ran = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKING, env=environment(home), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await ran.communicate()
    assert (ran.returncode, said.strip()) == (0, b"")
