"""get_storage_info and get_capabilities, through a client; and a demo world, in which everything answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import orjson
import pytest

from quantdeck.domain.demo_instruments import INSTRUMENTS
from tests.servers.chart_signals.conftest import KEYS, NOON_S, closing_at, of_closes
from tests.support.bars import at

SPEC = json.loads(Path("docs/spec/chart_signals.json").read_text())
ALL = ("get_signals", "get_watchlist", "check_market_status", "get_storage_info", "get_capabilities", "list_alerts")


async def test_storage_is_told_as_the_spec_names_it(chart, tmp_path):
    for symbol in ("TSLA", "BTC/USD", "AAPL", "ETH/USD", "EUR/USD"):
        await chart.fill(symbol, closing_at([1.0] * 3))
    await chart.fill("AAPL", closing_at(np.random.default_rng(1).random(30_000)))  # a mebibyte is no megabyte
    found = await chart("get_storage_info")
    sizes = sum(file.stat().st_size for file in (tmp_path / "home/data").rglob("*.parquet"))
    assert found == {
        "data_directory": str(tmp_path / "home/data"),
        "stored_symbols": {"stocks": ["AAPL", "TSLA"], "crypto": ["BTC_USD", "ETH_USD"]},
        "total_size_mb": round(sizes / 2**20, 2),
        "source": "parquet",
    }


async def test_an_empty_home_stores_nothing(chart, tmp_path):
    found = await chart("get_storage_info")
    assert found["stored_symbols"] == {"stocks": [], "crypto": []}
    assert (found["data_directory"], found["total_size_mb"]) == (str(tmp_path / "home/data"), 0)
    assert not (tmp_path / "home/data").exists()


async def test_a_symbol_is_stored_from_its_first_closed_bar_on(chart, chart_at):
    await chart.fill("AAPL", closing_at([1.0]))
    before = await chart("get_storage_info")
    await chart.fill("TSLA", of_closes([1.0], at("2026-02-01T00:00")))
    assert await chart("get_storage_info") == before
    later = await chart_at(at("2026-02-01T00:01"))
    assert (await later("get_storage_info"))["stored_symbols"]["stocks"] == ["AAPL", "TSLA"]


async def test_capabilities_are_the_specs_and_true(chart, era):
    found = await chart("get_capabilities")
    example = next(tool for tool in SPEC["tools"] if tool["name"] == "get_capabilities")["result_example"]
    differ = {"protocol", "data_source", "source"}
    assert {name: value for name, value in found.items() if name not in differ} == {
        name: value for name, value in example.items() if name not in differ
    }
    assert found["protocol"] == ("2025-11-25" if era == "legacy" else "2026-07-28")
    assert found["data_source"] == "stored bars (parquet)"


async def test_the_data_source_is_alpaca_where_there_is_a_key_for_it(chart_at):
    chart = await chart_at(alpaca=KEYS, candles="embedded")
    found = await chart("get_capabilities")
    assert (found["data_source"], found["storage"]) == ("Alpaca Markets", "sqlite")


@pytest.fixture
async def demo(chart_at, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/demo.json").write_bytes(orjson.dumps({"seed": 7, "days": 1}))
    return await chart_at(NOON_S + 5 * 3600, candles="")


@pytest.mark.parametrize("tool", ALL)
async def test_in_a_demo_world_everything_answers_and_says_demo(demo, tool):
    arguments = {"symbol": "AAPL", "timeframe": "15min"} if tool == "get_signals" else {}
    result = await demo.served.client.call_tool(tool, arguments)
    assert result.structured_content["source"] == "demo"
    assert result.meta["quantdeck/source"] == "demo"


async def test_in_a_demo_world_every_watched_symbol_is_ready(demo):
    found = await demo("get_watchlist")
    entries = [*found["watchlist"]["stocks"], *found["watchlist"]["crypto"]]
    assert len(entries) == 22
    assert all(entry["rsi"] is not None and "note" not in entry for entry in entries)
    assert {entry["symbol"] for entry in entries} <= INSTRUMENTS.keys()
    code, message, _ = await demo.refused("get_signals", symbol="ZZZZ", timeframe="1min")
    assert (code, "The demo market has no ZZZZ" in message) == (-32004, True)
