"""A reply of many rows names the form in which it is smaller; nothing is cut, and the JSON stays JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quantdeck.dialects.replies import BYTES_PER_TOKEN
from quantdeck.servers import load
from tests.servers.market_data_mcp.conftest import fill
from tests.support.bars import at, every, walk
from tests.support.over_http import body_of, served
from tests.support.program import quantdeck

NOON_S = at("2026-01-15T12:00")


@pytest.fixture
async def asked(serve):
    """Asks for bars with a setting of ours, and gives the blocks of text."""

    async def ask(reply_tokens: int, **arguments: Any) -> list[str]:
        market = await serve("market-data-mcp", reply_tokens=reply_tokens)
        await fill(market, "BTC/USD", walk(every(60, NOON_S - 60 * 1000, 1000)))
        result = await market.client.call_tool("get_candles", {"symbol": "BTC/USD", "timeframe": "1m", **arguments})
        assert json.loads(result.content[0].text) == result.structured_content
        return [block.text for block in result.content]

    return ask


async def test_a_long_reply_in_rows_says_how_to_ask_for_less_in_a_block_of_its_own(asked):
    body, advice = await asked(20_000, limit=1000)
    assert len(json.loads(body)["data"]["items"]) == 1000
    assert '"format": "columns"' in advice
    assert f"{round(len(body) / BYTES_PER_TOKEN):,} tokens" in advice


async def test_what_is_asked_for_as_advised_is_advised_no_further(asked):
    (rows, _), (columns,) = await asked(1000, limit=1000), await asked(1000, limit=1000, format="columns")
    assert len(columns) < 0.75 * len(rows)


@pytest.mark.parametrize("reply_tokens, limit", [(20_000, 100), (0, 1000)], ids=["short", "turned off"])
async def test_otherwise_there_is_one_block(asked, reply_tokens, limit):
    assert len(await asked(reply_tokens, limit=limit)) == 1


async def test_the_edge_is_the_number_of_tokens_itself(asked):
    (body,) = await asked(0, limit=300)
    tokens = round(len(body) / BYTES_PER_TOKEN)  # of answers that differ in their latency only
    assert len(await asked(tokens - 50, limit=300)) == 2
    assert len(await asked(tokens + 50, limit=300)) == 1


async def test_a_kept_answer_is_advised_likewise(serve):
    market = await serve("market-data-mcp", reply_tokens=1000)
    await fill(market, "BTC/USD", walk(every(60, NOON_S - 60 * 1000, 1000)))
    for cached in (False, True):
        result = await market.client.call_tool("get_candles", {"symbol": "BTC/USD", "timeframe": "1m"})
        assert result.structured_content["_metadata"]["cached"] is cached
        assert len(result.content) == 2


async def test_over_rest_a_header_says_it_and_over_http_a_block(tmp_path):
    (tmp_path / "demo.json").write_text('{"seed": 7, "days": 1}')
    asked: dict[str, Any] = {"symbol": "BTC/USD", "timeframe": "1m", "limit": 1000}
    clock = "2026-01-15T12:00:00Z"
    async with served(tmp_path, make=lambda _: (load("market-data-mcp"),), clock=clock) as server:
        rest = await server.rest("get_candles", arguments=asked)
        assert '"format": "columns"' in rest.headers["x-quantdeck-advice"]
        assert len(rest.json()["data"]["items"]) == 1000
        compact = await server.rest("get_candles", arguments={**asked, "format": "columns"})
        assert "x-quantdeck-advice" not in compact.headers
        told = body_of(await server.modern("get_candles", **asked))["result"]["content"]
        assert '"format": "columns"' in told[1]["text"]


def test_the_command_line_says_it_beside_the_answer(tmp_path):
    (tmp_path / "demo.json").write_text('{"seed": 7, "days": 1}')
    done = quantdeck("call", "get_candles", '{"symbol": "BTC/USD", "timeframe": "1m", "limit": 1000}', home=tmp_path)
    assert len(json.loads(done.stdout)["data"]["items"]) == 1000
    assert '"format": "columns"' in done.stderr
