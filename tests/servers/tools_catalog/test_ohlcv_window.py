"""features.ohlcv_window over REST, on bars of the home. Figures are held against plain arithmetic."""

from __future__ import annotations

import asyncio
from statistics import fmean, stdev
from typing import Any

import pytest

from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import DAY, MINUTE, Timeframe
from quantdeck.sources.candles import Candles
from tests.support import redis
from tests.support.bars import at, every, walk
from tests.support.over_http import Served

TOOL = "features.ohlcv_window"
NINE = at("2024-01-15T09:00")
HOUR: dict[str, Any] = {
    "symbol": "EURUSD",
    "start": "2024-01-15T09:00:00Z",
    "end": "2024-01-15T10:00:00Z",
    "interval": "1m",
    "features": ["sma", "rsi", "volatility"],
}
ALL = ["sma", "ema", "rsi", "macd", "bollinger", "volatility", "volume_profile"]


async def fill(server: Served, symbol: str, bars: Bars, base: Timeframe = MINUTE) -> None:
    await server.app.runtime.source(Candles).write(symbol, base, bars)


async def ask(server: Served, **said: Any) -> Any:
    return (await server.rest(TOOL, arguments={**HOUR, **said})).json()


async def data(server: Served, **said: Any) -> Any:
    body = await ask(server, **said)
    assert body["error"] is False, body
    return body["data"]


async def refused(server: Served, **said: Any) -> tuple[str, str]:
    body = await ask(server, **said)
    assert body["error"] is True, body
    return body["code"], body["message"]


@pytest.fixture
async def market(serving):
    async with serving(clock="2024-01-15T12:00:00Z", per_minute={TOOL: 0}, deadline_s={TOOL: 20}) as server:
        await fill(server, "EUR/USD", walk(every(60, NINE - 600 * 60, 1000)))
        yield server


async def test_the_specs_own_call_has_the_sixty_bars_of_its_hour(market):
    found = await data(market)
    assert (found["symbol"], found["interval"]) == ("EURUSD", "1m")
    assert [found["rows"][n]["timestamp"] for n in (0, -1)] == ["2024-01-15T09:00:00Z", "2024-01-15T09:59:00Z"]
    assert set(found["stats"]) == {"sma_20", "sma_50", "rsi_14", "volatility"}
    assert found["metadata"] == {
        "total_rows": 60,
        "first_timestamp": "2024-01-15T09:00:00Z",
        "last_timestamp": "2024-01-15T09:59:00Z",
        "data_completeness": 1.0,
    }


async def test_every_figure_is_that_of_the_last_row(market):
    bars = walk(every(60, NINE - 600 * 60, 1000)).between(0, NINE + 3600)
    close = bars.close.tolist()
    stats = (await data(market, features=ALL))["stats"]
    assert stats["sma_20"] == stats["bollinger_middle"] == pytest.approx(fmean(close[-20:]))
    assert stats["sma_50"] == pytest.approx(fmean(close[-50:]))
    reach = 2 * stdev(close[-20:]) * (19 / 20) ** 0.5
    assert stats["bollinger_upper"] - stats["bollinger_middle"] == pytest.approx(reach)
    assert stats["bollinger_middle"] - stats["bollinger_lower"] == pytest.approx(reach)
    moves = [now / before - 1 for before, now in zip(close[-21:], close[-20:], strict=False)]
    assert stats["volatility"] == pytest.approx(stdev(moves))
    averages = dict.fromkeys((12, 26), close[0])
    for price in close[1:]:
        averages = {period: had + (price - had) * 2 / (period + 1) for period, had in averages.items()}
    assert stats["ema_12"] == pytest.approx(averages[12], rel=1e-6)
    assert stats["ema_26"] == pytest.approx(averages[26], rel=1e-6)
    assert stats["macd_line"] == pytest.approx(stats["ema_12"] - stats["ema_26"])
    assert stats["macd_histogram"] == pytest.approx(stats["macd_line"] - stats["macd_signal"])
    inside = bars.between(NINE, NINE + 3600)
    typical = (inside.high + inside.low + inside.close) / 3
    assert stats["volume_vwap"] == pytest.approx(float((typical * inside.volume).sum() / inside.volume.sum()))


async def test_what_was_before_the_window_counts_and_is_not_shown(market):
    found = await data(market, start="2024-01-15T09:59:00Z", features=["sma", "macd"])
    assert len(found["rows"]) == 1
    whole = await data(market, features=["sma", "macd"])
    assert found["stats"] == pytest.approx(whole["stats"], rel=1e-3)


async def test_too_few_bars_are_mcp_010_and_what_there_is_of_a_feature_is_told(serving):
    async with serving(clock="2024-01-15T12:00:00Z", per_minute={TOOL: 0}) as server:
        await fill(server, "EUR/USD", walk(every(60, NINE, 30)))
        assert set((await data(server, features=["sma", "ema", "macd"]))["stats"]) == {
            "sma_20", "ema_12", "ema_26", "macd_line",
        }  # fmt: skip
        body = await ask(server, end="2024-01-15T09:14:00Z", features=["sma", "rsi", "ema"])
        assert (body["code"], "insufficient data" in body["message"].lower()) == ("MCP-010", True)
        assert body["details"] == {"required": {"rsi": 15, "sma": 20}, "available": 14}
        assert (await refused(server, start="2024-01-15T03:00:00Z", end="2024-01-15T09:00:00Z"))[0] == "MCP-010"
        assert (await refused(server, start="2030-01-01T00:00:00Z", end="2030-01-02T00:00:00Z"))[0] == "MCP-010"


async def test_a_figure_that_is_undefined_is_left_out(serving):
    async with serving(clock="2024-01-15T12:00:00Z") as server:
        flat = [1.1] * 60
        await fill(server, "EUR/USD", Bars.of(every(60, NINE, 60), flat, flat, flat, flat, [0.0] * 60))
        assert set((await data(server, features=["rsi", "volume_profile", "volatility"]))["stats"]) == {"volatility"}


async def test_completeness_is_by_the_calendar_of_what_is_traded(serving):
    async with serving(clock="2024-03-01T00:00:00Z", per_minute={TOOL: 0}, deadline_s={TOOL: 20}) as server:
        friday = {"start": "2024-01-12T00:00:00Z", "end": "2024-01-16T00:00:00Z", "interval": "1h", "features": ["ema"]}
        # New York: 14:30 to 21:00 are seven hours that begin on the hour; Monday is a holiday.
        await fill(server, "SPY", walk(every(60, at("2024-01-12T14:30"), 390)))
        await fill(
            server, "QQQ", walk([*every(60, at("2024-01-12T09:00"), 330), *every(60, at("2024-01-12T18:00"), 120)])
        )
        assert (await refused(server, **friday, symbol="SPY"))[0] == "MCP-010", "of seven bars there is no EMA of 12"
        daily = {**friday, "features": ["volume_profile"]}
        assert (await data(server, **daily, symbol="SPY"))["metadata"]["data_completeness"] == 1.0
        told = (await data(server, **daily, symbol="QQQ"))["metadata"]
        assert (told["total_rows"], told["data_completeness"]) == (8, pytest.approx(3 / 7)), (
            "what is early makes up for nothing"
        )
        await fill(server, "BTC/USD", walk(every(3600, at("2024-01-12T00:00"), 48)), Timeframe("1h", 3600))
        assert (await data(server, **daily, symbol="BTC/USD"))["metadata"]["data_completeness"] == 0.5
        await fill(server, "EUR/USD", walk(every(86_400, at("2024-01-12T00:00"), 4)), DAY)
        days = {**daily, "interval": "1d"}
        assert (await data(server, **days))["metadata"]["data_completeness"] == 1.0


async def test_bars_that_have_not_closed_are_neither_shown_nor_missed(serving):
    async with serving(clock="2024-01-15T09:30:30Z") as server:
        await fill(server, "EUR/USD", walk(every(60, NINE, 60)))
        told = (await data(server, features=["sma"]))["metadata"]
        assert told["last_timestamp"] == "2024-01-15T09:29:00Z"
        assert (told["total_rows"], told["data_completeness"]) == (30, 1.0)


@pytest.mark.parametrize(
    "said",
    [
        {"symbol": "btc/usd"}, {"symbol": "EURUSDX"}, {"symbol": "EU"}, {"symbol": "EURUSD\n"}, {"symbol": "EUR/US"},
        {"symbol": "ABCDEF"}, {"symbol": "GBPUSD"}, {"symbol": 7}, {"interval": "2m"}, {"features": []},
        {"features": ["sma"] * 11}, {"features": ["atr"]}, {"features": "sma"}, {"start": "2024-01-15"},
        {"start": "2024-01-15T10:00:00Z"}, {"start": "2024-01-15T10:00:00"}, {"start": 1705309200},
        {"start": "0001-01-01T00:00:00+14:00"}, {"start": "0001-01-01T00:00:00Z"}, {"extra": 1}, {"end": None},
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_no_window_is_mcp_001(market, said):
    code, message = await refused(market, **said)
    assert (code, message[:19]) == ("MCP-001", "Invalid arguments: ")


async def test_an_interval_finer_than_what_is_stored_is_mcp_001_with_what_there_is(market):
    await fill(market, "SPY", walk(every(3600, NINE - 10 * 3600, 30)), Timeframe("1h", 3600))
    body = await ask(market, symbol="SPY")
    assert (body["code"], body["details"]["available"][0]) == ("MCP-001", "1h")


async def test_a_window_of_too_many_bars_is_refused_and_says_how_many_it_has(serving):
    async with serving(clock="2024-03-01T00:00:00Z", per_minute={TOOL: 0}, deadline_s={TOOL: 20}) as server:
        await fill(server, "BTC/USD", walk(every(60, at("2024-01-01T00:00"), 10_001)))
        asked = {"symbol": "BTC/USD", "start": "2024-01-01T00:00:00Z", "features": ["sma"]}
        body = await ask(server, **asked, end="2024-01-07T22:41:00Z")
        assert (body["code"], body["details"]) == ("MCP-001", {"rows": 10_001, "max_rows": 10_000})
        assert (await data(server, **asked, end="2024-01-07T22:40:00Z"))["metadata"]["total_rows"] == 10_000


async def test_equal_questions_are_one_question_however_they_are_spelt(market):
    first = await ask(market)
    said = {"start": "2024-01-15T11:00:00+02:00", "features": ["volatility", "sma", "rsi", "sma"]}
    again = await ask(market, **said)
    assert (first["metadata"]["cached"], again["metadata"]["cached"]) == (False, True)
    assert again["metadata"]["idempotency_key"] == first["metadata"]["idempotency_key"]
    assert again["data"] == first["data"]
    assert (await ask(market, features=["sma", "rsi"]))["metadata"]["cached"] is False


async def test_ten_at_once_agree(market):
    told = await asyncio.gather(*(ask(market) for _ in range(10)))
    assert all(one["data"] == told[0]["data"] for one in told)


@pytest.mark.services
async def test_replicas_share_what_redis_keeps(serving):
    kept = {"clock": "2024-01-15T12:00:00Z", "state": redis.available().url, "redis": redis.keyed()}
    async with serving(**kept) as one, serving(**kept) as other:
        await fill(one, "EUR/USD", walk(every(60, NINE - 600 * 60, 1000)))
        first, again = await ask(one), await ask(other)
    assert (first["metadata"]["cached"], again["metadata"]["cached"]) == (False, True)
    assert again["data"] == first["data"]


async def test_columns_say_the_same(market):
    rows, columns = await data(market), await data(market, format="columns")
    assert columns["columns"]["close"] == [row["close"] for row in rows["rows"]]
    assert "rows" not in columns
    assert columns["stats"] == rows["stats"]
