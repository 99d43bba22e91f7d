"""get_symbols, through a client."""

from __future__ import annotations

import orjson
import pytest
from mcp.shared.exceptions import MCPError

from tests.support.contracts import contract_of
from tests.support.pyth_stub import FEEDS, KEY, PythStub, feed

SPEC = {tool["name"]: tool for tool in contract_of("pyth")["tools"]}


async def test_a_row_has_what_the_spec_names(pyth):
    ask = await pyth("")
    body = await ask("get_symbols", query="bitcoin")
    (row,) = body["feeds"]
    assert set(SPEC["get_symbols"]["item_fields"]) <= row.keys()
    assert (row["pyth_lazer_id"], row["symbol"], row["exponent"]) == (1, "Crypto.BTC/USD", -8)
    assert row["hermes_id"].startswith("e62df6c8")
    assert row["market_open"] is True
    assert "authorization" not in ask.stub.last("/symbols").headers


async def test_pages_by_fifty_and_says_where_the_next_begins(pyth):
    many = [feed(number, f"Crypto.X{number}/USD", "X") for number in range(1, 103)]
    ask = await pyth(stub=PythStub(feeds=many))
    first = await ask("get_symbols")
    assert [first[name] for name in ("count", "total_available", "has_more", "next_offset")] == [50, 102, True, 50]
    last = await ask("get_symbols", offset=90, limit=20)
    assert [last[name] for name in ("count", "has_more", "next_offset")] == [12, False, None]
    beyond = await ask("get_symbols", offset=500)
    assert (beyond["feeds"], beyond["total_available"], beyond["has_more"]) == ([], 102, False)
    seen = [
        row["pyth_lazer_id"] for offset in (0, 50, 100) for row in (await ask("get_symbols", offset=offset))["feeds"]
    ]
    assert seen == list(range(1, 103))
    assert len(ask.stub.asked) == 1  # one list for all of them


@pytest.mark.parametrize(
    "asked, ids",
    [
        ({"query": "gold"}, [346]),
        ({"query": "AAPL"}, [922, 1792]),
        ({"asset_type": "funding-rate"}, [112]),
        ({"asset_type": "crypto-index"}, [3304]),  # not among the spec's seven
        ({"query": "usd", "asset_type": "metal"}, [346]),
        ({"query": "   ", "asset_type": "metal"}, [346]),
    ],
)
async def test_filters_are_ours_and_reach_no_service(pyth, asked, ids):
    ask = await pyth()
    assert [row["pyth_lazer_id"] for row in (await ask("get_symbols", **asked))["feeds"]] == ids
    assert ask.stub.last("/symbols").query == {}


async def test_the_same_feeds_come_as_columns_in_about_half(pyth):
    many = [feed(number, f"Crypto.X{number}/USD", f"COIN {number} / US DOLLAR") for number in range(1, 201)]
    ask = await pyth(stub=PythStub(feeds=many))
    told, rows = [await ask("get_symbols", limit=100, format=form) for form in ("columns", "rows")]
    columns = told.pop("columns")
    feeds = rows.pop("feeds")
    assert told == rows
    assert [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)] == [
        {**row, "market_changes_at": row.get("market_changes_at")} for row in feeds
    ]
    assert len(orjson.dumps(columns)) < 0.6 * len(orjson.dumps(feeds))


async def test_a_long_page_names_the_smaller_form_and_cuts_nothing(pyth):
    many = [feed(number, f"Crypto.X{number}/USD", f"COIN {number} / US DOLLAR") for number in range(1, 201)]
    ask = await pyth(stub=PythStub(feeds=many))
    body, advice = (await ask.client.call_tool("get_symbols", {"limit": 200})).content
    assert orjson.loads(body.text)["count"] == 200
    assert '"format": "columns"' in advice.text
    (_,) = (await ask.client.call_tool("get_symbols", {"limit": 50})).content
    (_,) = (await ask.client.call_tool("get_symbols", {"limit": 200, "format": "columns"})).content


async def test_no_match_names_the_asset_types_that_there_are(pyth):
    ask = await pyth()
    body = await ask("get_symbols", asset_type="stonks")
    assert (body["feeds"], body["total_available"]) == ([], 0)
    assert "perpetual-swap" in body["note"]  # from the list itself, whatever we knew


@pytest.mark.parametrize("arguments", [{"limit": 201}, {"limit": 0}, {"offset": -1}, {"limit": True}, {"query": 7},
                                       {"bogus": 1}, {"limit": 1.5}])  # fmt: skip
async def test_what_is_no_proper_request_is_a_protocol_error(pyth, arguments):
    ask = await pyth()
    with pytest.raises(MCPError) as refused:
        await ask.client.call_tool("get_symbols", arguments)
    assert refused.value.error.code == -32602


async def test_numerals_in_strings_are_understood(pyth):
    ask = await pyth()
    assert (await ask("get_symbols", limit="2", offset="1"))["count"] == 2


async def test_a_market_that_is_shut_is_said_to_be_and_when_it_opens(pyth):
    ask = await pyth(clock="2026-06-06T12:00:00Z")  # a Saturday
    (apple, *_) = (await ask("get_symbols", query="apple inc"))["feeds"]
    assert (apple["market_open"], apple["market_changes_at"]) == (False, "2026-06-08T13:30:00Z")


async def test_a_row_without_a_schedule_is_neither_open_nor_shut(pyth):
    ask = await pyth(stub=PythStub(feeds=[feed(1, "Crypto.X/USD", "X", schedule="what?"), {"bogus": 1}, None]))
    (row,) = (await ask("get_symbols"))["feeds"]
    assert row["market_open"] is None


@pytest.mark.parametrize(
    "answer, kind, said",
    [((500, b""), "upstream", "try again later"), ((401, b""), "auth", "invalid or expired"),
     ((200, b"{}"), "upstream", "shape"), ((429, b"", {"retry-after": "0"}), "rate_limited", "try again")],
)  # fmt: skip
async def test_a_list_that_cannot_be_had_is_said_so(pyth, answer, kind, said):
    ask = await pyth(KEY, stub=PythStub(failing=[answer] * 2))
    told = await ask.refused("get_symbols")
    assert told[0] == kind
    assert said in told[1]


async def test_the_log_says_what_was_asked(pyth):
    ask = await pyth()
    await ask("get_symbols", asset_type="metal")
    (event,) = ask.events
    told = {name: event[name] for name in ("num_feeds", "num_feeds_returned", "asset_types", "has_token", "status")}
    assert told == {
        "num_feeds": 1, "num_feeds_returned": 1, "asset_types": ["metal"], "has_token": True, "status": "success",
    }  # fmt: skip
    assert event["api_latency_ms"] > 0
    assert len(event["token_hash"]) == 8
    assert len(FEEDS) > 1


@pytest.mark.parametrize("filters", [{"query": "u " * 101}, {"asset_type": "x" * 201}])
async def test_a_filter_that_nobody_would_write_is_refused_before_anything_is_looked_for(pyth, filters):
    ask = await pyth()
    kind, said = await ask.refused("get_symbols", **filters)
    assert (kind, "at most 200 characters" in said, ask.stub.asked) == ("invalid_input", True, [])
    assert (await ask("get_symbols", query="btc " * 50))["count"] == 2
