"""get_recent_decisions, through a client."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from quantdeck.sources.sql.decisions import Decisions
from tests.servers.decisions_mcp.conftest import WHY
from tests.support.decisions import save
from tests.support.desk import LATER, NOON


async def test_answers_what_was_decided_in_the_specs_shape(diary):
    saved = await diary.save(symbol="btc-usd", action="buy", confidence=1, opportunity_score=62.5)
    body = await diary("get_recent_decisions")
    item = {
        "decision_id": saved, "symbol": "BTC/USD", "action": "BUY", "confidence": 1.0, "opportunity_score": 62.5,
        "reasoning": "why", "created_at": NOON.isoformat().replace("+00:00", "Z"),
    }  # fmt: skip
    assert body["data"] == {
        "items": [item],
        "pagination": {"offset": 0, "limit": 10, "total": 1, "has_more": False},
    }
    metadata = body["_metadata"]
    assert (metadata["cached"], metadata["cache_ttl_remaining"]) == (False, None)
    assert metadata["source"] == diary.database.source


async def test_a_score_of_zero_stays_zero_and_none_is_null(diary):
    await diary.save(opportunity_score=0, confidence=0)
    await diary.save()
    items = (await diary("get_recent_decisions"))["data"]["items"]
    assert [(item["opportunity_score"], item["confidence"]) for item in items] == [(None, 0.7), (0.0, 0.0)]


async def test_nothing_decided_is_an_empty_list(diary):
    body = await diary("get_recent_decisions", symbol="BTC/USD")
    assert body["data"] == {"items": [], "pagination": {"offset": 0, "limit": 10, "total": 0, "has_more": False}}


async def test_pages_by_ten_unless_told_and_says_whether_there_is_more(diary):
    ids = [await diary.save() for _ in range(12)][::-1]
    first = (await diary("get_recent_decisions"))["data"]
    assert [item["decision_id"] for item in first["items"]] == ids[:10]
    assert first["pagination"] == {"offset": 0, "limit": 10, "total": 12, "has_more": True}
    rest = (await diary("get_recent_decisions", offset=10, limit=5000))["data"]
    assert [item["decision_id"] for item in rest["items"]] == ids[10:]
    assert rest["pagination"] == {"offset": 10, "limit": 100, "total": 12, "has_more": False}
    beyond = (await diary("get_recent_decisions", offset=70))["data"]
    assert beyond == {"items": [], "pagination": {"offset": 70, "limit": 10, "total": 12, "has_more": False}}


async def test_a_symbol_is_understood_in_any_spelling_and_an_action_in_any_case(diary):
    btc = await diary.save()
    eth = await diary.save(symbol="ETH/USD", action="SELL")
    assert await diary.listed() == [eth, btc]
    assert await diary.listed(symbol="ethusd") == [eth]
    assert await diary.listed(action="sell") == [eth]
    assert await diary.listed(symbol="BTC/USD", action="SELL") == []
    assert await diary.listed(symbol=None, action=None) == [eth, btc]


async def test_a_decision_saved_after_the_clock_is_in_no_answer(diary):
    known = await diary.save()
    await save(Decisions(diary.database), LATER)
    await save(Decisions(diary.database), NOON + timedelta(days=400))
    assert await diary.listed(force_refresh=True) == [known]


async def test_a_second_call_comes_from_the_cache_until_something_is_saved(diary):
    first = await diary.save()
    for cached in (False, True):
        body = await diary("get_recent_decisions", symbol=("BTC/USD", "btcusd")[cached])
        assert body["_metadata"]["cached"] is cached
    assert 0 < body["_metadata"]["cache_ttl_remaining"] <= 30
    assert not (await diary("get_recent_decisions", symbol="BTC/USD", force_refresh=True))["_metadata"]["cached"]
    second = await diary.save()
    body = await diary("get_recent_decisions", symbol="BTC/USD")
    assert [item["decision_id"] for item in body["data"]["items"]] == [second, first]
    assert not body["_metadata"]["cached"]


async def test_what_another_process_saves_is_seen_though_an_answer_is_kept(diary, serve, database):
    """A process has its own cache, sources and marks; so has a second app over the same database."""
    elsewhere = await serve("decisions-mcp", **database)
    ours = await diary.save()
    assert await diary.listed() == [ours]
    theirs = (await elsewhere("save_decision", symbol="BTC/USD", action="HOLD", confidence=0, reasoning="so"))["data"]
    while (body := await diary("get_recent_decisions"))["data"]["pagination"]["total"] == 1:
        assert body["_metadata"]["cache_ttl_remaining"] > 28, "only its time to live ends what is kept"
    assert body["data"]["items"][0]["decision_id"] == theirs["decision_id"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"symbol": "nope"}, "INVALID_SYMBOL"),
    ({"symbol": ""}, "INVALID_SYMBOL"),
    ({"symbol": 7}, "INVALID_SYMBOL"),
    ({"symbol": "BTC/USD\0"}, "INVALID_SYMBOL"),
    ({"action": "WAIT"}, "INVALID_ACTION"),
    ({"action": ""}, "INVALID_ACTION"),
    ({"action": 1}, "INVALID_ACTION"),
    ({"action": ["BUY"]}, "INVALID_ACTION"),
    ({"limit": 0}, "INVALID_PARAMETER"),
    ({"limit": "7"}, "INVALID_PARAMETER"),
    ({"limit": True}, "INVALID_PARAMETER"),
    ({"offset": -1}, "INVALID_PARAMETER"),
    ({"offset": 1e30}, "INVALID_PARAMETER"),
    ({"since": "yesterday"}, "INVALID_PARAMETER"),
    ({"force_refresh": 1}, "INVALID_PARAMETER"),
]


async def test_fails_with_a_declared_code(diary):
    told = [(asked, (await diary.refused("get_recent_decisions", **asked))["code"]) for asked, _ in REFUSED]
    assert told == REFUSED


async def test_an_offset_as_large_as_can_be_is_past_the_end(diary):
    await diary.save()
    assert await diary.listed(offset=2**63 - 1) == []


BOTH: list[tuple[str, dict[str, Any]]] = [("get_recent_decisions", {}), ("save_decision", WHY)]


async def test_a_missing_table_is_a_database_error_that_names_no_table(diary):
    await diary.database.execute("ALTER TABLE agent_decisions RENAME TO elsewhere")
    for tool, said in BOTH:
        error = await diary.refused(tool, **said)
        assert (error["code"], "agent_decisions" in error["message"]) == ("DATABASE_ERROR", False)


@pytest.mark.parametrize("database", [{}], ids=["sqlite"])
async def test_no_database_is_a_database_error_that_says_what_to_set(diary):
    diary.served.app.databases.path("decisions").unlink()
    for tool, said in BOTH:
        error = await diary.refused(tool, **said)
        assert (error["code"], "QUANTDECK_DATABASE" in error["message"]) == ("DATABASE_ERROR", True)
