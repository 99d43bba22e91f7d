"""get_top_strategies, through a client."""

from __future__ import annotations

import pytest

from tests.support.desk import LATER, add_implementation, add_signal, add_spec


async def test_answers_the_ranking_in_the_specs_shape(strategy):
    spec = await add_spec(strategy.desk, "SMA_RSI")
    impl = await add_implementation(strategy.desk, "one", spec, forward_sharpe=0.5, forward_accuracy=0.62)
    await add_signal(strategy.desk, "one", impl)
    body = await strategy("get_top_strategies", symbol="btc-usd")
    item = {
        "strategy_id": impl, "name": "SMA_RSI", "score": 0.5, "sharpe": 0.5, "accuracy": 0.62, "signals_count": 1,
    }  # fmt: skip
    assert body["data"] == {
        "items": [item],
        "pagination": {"offset": 0, "limit": 5, "total": 1, "has_more": False},
    }
    metadata = body["_metadata"]
    assert metadata.keys() == {"latency_ms", "cached", "cache_ttl_remaining", "source"}
    assert (metadata["cached"], metadata["cache_ttl_remaining"]) == (False, None)
    assert metadata["source"] == strategy.desk.source


@pytest.mark.parametrize("metric, score", [("sharpe", 0.5), ("accuracy", 0.62), ("return", 0.4)], ids=str)
async def test_the_score_is_the_asked_metric_on_zero_to_one(strategy, metric, score):
    spec = await add_spec(strategy.desk)
    await add_implementation(strategy.desk, "one", spec, forward_sharpe=0.5, forward_accuracy=0.62, forward_return=0.2)
    body = await strategy("get_top_strategies", symbol="BTC/USD", metric=metric)
    assert body["data"]["items"][0]["score"] == pytest.approx(score)


async def test_what_nobody_measured_is_null(strategy):
    await add_implementation(strategy.desk, "one", await add_spec(strategy.desk))
    (item,) = (await strategy("get_top_strategies", symbol="BTC/USD"))["data"]["items"]
    assert (item["score"], item["sharpe"], item["accuracy"], item["signals_count"]) == (None, None, None, 0)


async def test_pages_by_five_unless_told_and_says_whether_there_is_more(strategy):
    spec = await add_spec(strategy.desk)
    for number in range(7):
        await add_implementation(strategy.desk, f"{number}", spec, forward_sharpe=number / 10)
    first = (await strategy("get_top_strategies", symbol="BTC/USD"))["data"]
    assert (len(first["items"]), first["pagination"]["has_more"]) == (5, True)
    rest = (await strategy("get_top_strategies", symbol="BTC/USD", offset=5))["data"]
    assert (len(rest["items"]), rest["pagination"]["has_more"], rest["pagination"]["total"]) == (2, False, 7)
    beyond = (await strategy("get_top_strategies", symbol="BTC/USD", offset=70))["data"]
    assert beyond == {"items": [], "pagination": {"offset": 70, "limit": 5, "total": 7, "has_more": False}}


async def test_a_limit_above_the_cap_is_cut_and_echoed(strategy):
    await add_implementation(strategy.desk, "one", await add_spec(strategy.desk))
    body = await strategy("get_top_strategies", symbol="BTC/USD", limit=5000)
    assert body["data"]["pagination"]["limit"] == 100


async def test_a_second_call_comes_from_the_cache_unless_refreshed(strategy):
    spec = await add_spec(strategy.desk)
    await add_implementation(strategy.desk, "one", spec)
    assert not (await strategy("get_top_strategies", symbol="BTC/USD"))["_metadata"]["cached"]
    await add_implementation(strategy.desk, "two", spec)
    again = await strategy("get_top_strategies", symbol="btcusd")
    assert again["_metadata"]["cached"]
    assert 0 < again["_metadata"]["cache_ttl_remaining"] <= 30
    assert again["data"]["pagination"]["total"] == 1
    fresh = await strategy("get_top_strategies", symbol="BTC/USD", force_refresh=True)
    assert (fresh["_metadata"]["cached"], fresh["data"]["pagination"]["total"]) == (False, 2)
    after = await strategy("get_top_strategies", symbol="BTC/USD")
    assert (after["_metadata"]["cached"], after["data"]["pagination"]["total"]) == (True, 2)


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"symbol": "nope"}, "INVALID_SYMBOL"),
        ({"symbol": ""}, "INVALID_SYMBOL"),
        ({"symbol": 7}, "INVALID_SYMBOL"),
        ({"symbol": None}, "INVALID_SYMBOL"),
        ({}, "INVALID_SYMBOL"),
        ({"symbol": "BTC/USD", "metric": "profit"}, "INVALID_METRIC"),
        ({"symbol": "BTC/USD", "metric": 1}, "INVALID_METRIC"),
        ({"symbol": "BTC/USD", "limit": 0}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "limit": "7"}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "limit": True}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "offset": -1}, "INVALID_PARAMETER"),
        ({"symbol": "BTC/USD", "min_score": 0.5}, "INVALID_PARAMETER"),
        ({"symbol": "DOGE/USD"}, "SYMBOL_NOT_FOUND"),
    ],
    ids=str,
)
async def test_fails_with_a_declared_code(strategy, arguments, code):
    assert (await strategy.refused("get_top_strategies", **arguments))[0] == code


async def test_no_database_is_a_database_error_that_says_what_to_set(serve):
    strategy = await serve("strategy-mcp")
    strategy.app.databases.path("desk").unlink()
    code, message = await strategy.refused("get_top_strategies", symbol="BTC/USD")
    assert code == "DATABASE_ERROR"
    assert "QUANTDECK_DATABASE" in message
    assert "quantdeck demo" in message
    assert str(strategy.app.settings.home_path) not in message


async def test_a_ranking_changed_after_the_fixed_clock_is_refused(strategy):
    await add_implementation(strategy.desk, "one", await add_spec(strategy.desk), updated_at=LATER)
    code, message = await strategy.refused("get_top_strategies", symbol="BTC/USD")
    assert code == "NOT_FOUND"
    assert "after the fixed clock" in message
