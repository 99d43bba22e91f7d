"""get_signals, through a client."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pytest

from quantdeck.domain.candles import resampled
from quantdeck.domain.crossings import RULES, reading
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.sources.candles import Candles
from tests.servers.chart_signals.conftest import KEYS, NOON_S, closing_at, of_closes
from tests.support.bars import at, rows, walk

LENGTHS = {"1min": "1m", "5min": "5m", "15min": "15m", "1hour": "1h"}


def prices(many: int, seed: int = 5) -> np.ndarray:
    return 200 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0, 2e-3, many)))


async def test_the_answer_is_what_the_spec_prints(chart):
    closes = prices(600)
    await chart.fill("AAPL", closing_at(closes))
    found = await chart("get_signals", symbol="AAPL", timeframe="1min")
    assert list(found)[:6] == ["ready", "symbol", "asset_type", "tf", "snapshot", "crossings"]
    assert (found["ready"], found["symbol"], found["asset_type"], found["tf"]) == (True, "AAPL", "stock", "1min")
    assert found["snapshot"]["time"] == "2026-01-15T11:59:00+00:00"
    assert found["snapshot"]["price"] == closes[-1]
    assert list(found["crossings"]) == list(RULES)
    assert (found["age_seconds"], found["source"]) == (0, "parquet")


def ema(values: list[float], period: int) -> list[float]:
    found = [math.fsum(values[:period]) / period]
    for value in values[period:]:
        found.append(found[-1] + 2 / (period + 1) * (value - found[-1]))
    return found


async def test_figures_are_those_of_plain_python_over_the_whole_series(chart):
    closes = prices(1500).tolist()
    await chart.fill("AAPL", closing_at(closes))
    found = (await chart("get_signals", symbol="AAPL", timeframe="1min"))["snapshot"]
    line = [fast - slow for fast, slow in zip(ema(closes, 12)[14:], ema(closes, 26), strict=True)]
    signal, window = ema(line, 9)[-1], closes[-20:]
    middle = sum(window) / 20
    reach = 2 * math.sqrt(sum((close - middle) ** 2 for close in window) / 20)
    gain = loss = 0.0
    for place in range(1, len(closes)):  # Wilder: the mean of the first 14 moves, then a fourteenth of each
        move = closes[place] - closes[place - 1]
        weight = min(place, 14)
        gain += (max(move, 0) - gain) / weight
        loss += (max(-move, 0) - loss) / weight
    expected = {
        "price": closes[-1], "ema9": ema(closes, 9)[-1], "ma10": sum(closes[-10:]) / 10, "macd": line[-1],
        "signal": signal, "hist": line[-1] - signal, "rsi": 100 * gain / (gain + loss),
        "bb_upper": middle + reach, "bb_middle": middle, "bb_lower": middle - reach,
    }  # fmt: skip
    for name, figure in expected.items():
        assert found[name] == pytest.approx(figure, rel=1e-10, abs=1e-9), name


@pytest.mark.parametrize("timeframe", LENGTHS)
async def test_thirty_four_closed_bars_are_too_few_and_thirty_five_enough(chart_at, timeframe):
    length = TIMEFRAMES[LENGTHS[timeframe]]
    begins_s = length.floor(at("2026-05-29T13:00"))
    closes = prices(40 * length.seconds // 60)
    for many, ready in ((34, False), (35, True)):
        chart = await chart_at(begins_s + many * length.seconds)
        await chart.fill("BTC/USD", of_closes(closes, begins_s))
        found = await chart("get_signals", symbol="BTC/USD", timeframe=timeframe)
        assert found["ready"] is ready
        if not ready:
            assert found == {
                "ready": False, "reason": "insufficient bars (need 35+)", "symbol": "BTC/USD", "tf": timeframe,
                "bars_available": 34, "bars_needed": 35, "error_code": -32001, "source": "parquet",
            }  # fmt: skip


@pytest.mark.parametrize("timeframe", ["5min", "15min", "1hour"])
async def test_a_bucket_that_is_not_over_is_in_no_figure(chart_at, timeframe):
    length = TIMEFRAMES[LENGTHS[timeframe]]
    chart = await chart_at(NOON_S + length.seconds - 1)
    bars = walk([NOON_S - 60 * minute for minute in range(60 * 60, -(length.seconds // 60), -1)])
    await chart.fill("BTC/USD", bars)
    found = await chart("get_signals", symbol="BTC/USD", timeframe=timeframe)
    closed = resampled(bars[: int(bars.time.searchsorted(NOON_S))], length)
    assert found["snapshot"]["time"] == datetime.fromtimestamp(NOON_S - length.seconds, UTC).isoformat()
    assert found["snapshot"]["price"] == closed.close[-1]
    assert found["snapshot"]["ema9"] == reading(closed.close[-500:]).last.ema9


async def test_the_minute_that_has_just_closed_counts_and_the_one_that_runs_does_not(chart_at):
    bars = closing_at(prices(60), NOON_S + 60)
    for second, opened in ((59, "11:59"), (60, "12:00")):
        chart = await chart_at(NOON_S + second)
        await chart.fill("AAPL", bars)
        found = await chart("get_signals", symbol="AAPL", timeframe="1min")
        assert found["snapshot"]["time"] == f"2026-01-15T{opened}:00+00:00"


async def test_a_correction_of_the_last_bar_flips_a_crossing(chart):
    closes = [*np.linspace(200, 190, 60), 189.0]
    await chart.fill("AAPL", closing_at(closes))
    assert not (await chart("get_signals", symbol="AAPL", timeframe="1min"))["crossings"]["ema_reclaim"]
    await chart.fill("AAPL", closing_at([201.0]))
    found = await chart("get_signals", symbol="AAPL", timeframe="1min")
    assert found["crossings"]["ema_reclaim"]
    assert found["snapshot"]["price"] == 201


@pytest.mark.parametrize("edge", ["2025-10-01T00:20", "2026-01-01T00:20"])
async def test_months_and_years_end_without_a_seam(chart_at, edge):
    chart = await chart_at(at(edge))
    closes = prices(60)
    await chart.fill("BTC/USD", closing_at(closes, at(edge)))
    found = await chart("get_signals", symbol="BTC/USD", timeframe="1min")
    assert found["snapshot"]["ema9"] == reading(closes).last.ema9


async def test_gaps_stay_gaps(chart):
    bars = closing_at(prices(400))
    kept = np.random.default_rng(3).random(400) < 0.4
    await chart.fill("SMR", bars.of(*(column[kept] for column in bars.columns())))
    found = await chart("get_signals", symbol="SMR", timeframe="1min")
    assert found["snapshot"]["ema9"] == reading(bars.close[kept]).last.ema9


async def test_the_hourly_bars_of_a_stock_are_read_back_as_far_as_it_takes(chart):
    """Five sessions a week, three months back: the seven days of the original had 35 bars at best."""
    days = [NOON_S - 86_400 * back + 90 * 60 for back in range(70, 0, -1)]
    opens = [
        day + 60 * minute for day in days if datetime.fromtimestamp(day, UTC).weekday() < 5 for minute in range(390)
    ]
    bars = walk(opens)
    await chart.fill("AAPL", bars)
    found = await chart("get_signals", symbol="AAPL", timeframe="1hour")
    hours = resampled(bars, TIMEFRAMES["1h"])
    assert len(hours) < 500
    assert found["snapshot"]["rsi"] == reading(hours.close).last.rsi


async def test_no_answer_has_a_bar_that_closes_later(chart_at):
    chart = await chart_at()
    bars = closing_at(prices(600), NOON_S + 300 * 60)
    await chart.fill("BTC/USD", bars[:300])
    before = [await chart("get_signals", symbol="BTC/USD", timeframe=timeframe) for timeframe in LENGTHS]
    await chart.fill("BTC/USD", bars[300:])
    assert [await chart("get_signals", symbol="BTC/USD", timeframe=timeframe) for timeframe in LENGTHS] == before
    later = await chart_at(NOON_S + 300 * 60)
    assert (await later("get_signals", symbol="BTC/USD", timeframe="1min"))["snapshot"]["price"] == bars.close[-1]


@pytest.mark.parametrize("spelling", ["BTC", "btc", "BTC/USD", "btc-usd", "BTC_USD", "BTCUSD"])
async def test_a_coin_goes_by_any_usual_name(chart, spelling):
    await chart.fill("BTC/USD", closing_at(prices(60)))
    found = await chart("get_signals", symbol=spelling, timeframe="1min")
    assert (found["symbol"], found["asset_type"]) == ("BTC/USD", "crypto")


async def test_a_market_that_stands_still_has_no_rsi_and_no_nan(chart):
    await chart.fill("AAPL", closing_at([0.1 + 0.2] * 60))
    found = await chart("get_signals", symbol="AAPL", timeframe="1min")
    assert found["snapshot"]["rsi"] is None
    assert [name for name, holds in found["crossings"].items() if holds] == ["bb_squeeze"]


async def test_bars_that_are_missing_are_stale_only_while_the_market_is_open(chart_at):
    friday = at("2026-05-29T20:00")
    for instant, stale in (
        ("2026-05-29T20:03", False),
        ("2026-05-31T12:00", False),
        ("2026-06-01T13:35", False),
        ("2026-06-01T13:37", True),
    ):
        chart = await chart_at(at(instant))
        await chart.fill("AAPL", closing_at(prices(60), friday))
        found = await chart("get_signals", symbol="AAPL", timeframe="1min")
        assert (found["stale"], found["age_seconds"]) == (stale, at(instant) - friday)


async def test_a_longer_bar_is_missed_when_it_should_have_closed(chart_at):
    """On a Friday's afternoon in New York the hour that closed at 18:00 is the newest until 19:00."""
    for instant, stale in (("2026-05-29T18:59", False), ("2026-05-29T19:05", False), ("2026-05-29T19:06", True)):
        chart = await chart_at(at(instant))
        await chart.fill("AAPL", closing_at(prices(60), at("2026-05-29T18:00"), 3600))
        assert (await chart("get_signals", symbol="AAPL", timeframe="1hour"))["stale"] is stale


# What there is not.


async def test_a_home_without_bars_says_what_to_set(chart):
    for symbol in ("AAPL", "ZZZZ"):
        code, message, data = await chart.refused("get_signals", symbol=symbol, timeframe="1min")
        assert (code, message.partition(":")[0]) == (-32004, "Market data unavailable")
        for way in (
            "ALPACA_API_KEY",
            "ALPACA_SECRET_KEY",
            "quantdeck import candles",
            "QUANTDECK_CANDLES",
            "quantdeck demo",
        ):
            assert way in message
        assert data["setting"] == "QUANTDECK_CANDLES"


async def test_a_symbol_without_bars_says_what_to_set(chart):
    await chart.fill("TSLA", closing_at(prices(60)))
    code, message, data = await chart.refused("get_signals", symbol="AAPL", timeframe="1min")
    assert (code, data["symbol"]) == (-32004, "AAPL")
    assert "ALPACA_API_KEY" in message


async def test_a_watched_symbol_that_a_collector_has_a_key_for_is_merely_not_ready(chart_at):
    chart = await chart_at(alpaca=KEYS)
    await chart.fill("TSLA", closing_at(prices(60)))
    found = await chart("get_signals", symbol="AAPL", timeframe="1min")
    assert (found["ready"], found["bars_available"]) == (False, 0)
    assert (await chart.refused("get_signals", symbol="ZZZZ", timeframe="1min"))[0] == -32004


@pytest.mark.parametrize(
    "symbol", ["", " ", "TOOLONG", "BTC/", "../../etc", "EUR/USD", "XAU/USD", "BTC USD", "A1", "$"]
)
async def test_what_is_no_stock_and_no_coin_is_an_invalid_symbol(chart, symbol):
    code, message, _ = await chart.refused("get_signals", symbol=symbol, timeframe="1min")
    assert (code, message.partition(":")[0]) == (-32002, "Invalid symbol")


@pytest.mark.parametrize("timeframe", ["1m", "2min", "1h", "1day", "", 1])
async def test_another_timeframe_is_invalid(chart, timeframe):
    code, message, _ = await chart.refused("get_signals", symbol="AAPL", timeframe=timeframe)
    assert (code, message.partition(":")[0]) == (-32003, "Invalid timeframe")


async def test_other_wrong_arguments_are_json_rpcs_own(chart):
    for arguments in (
        {"symbol": "AAPL", "timeframe": "1min", "more": 1},
        {"symbol": "AAPL", "timeframe": "1min", "tf": "1min"},
    ):
        assert (await chart.refused("get_signals", **arguments))[0] == -32602


async def test_a_series_of_longer_bars_says_which_there_can_be(chart_at):
    chart = await chart_at(candles="embedded")
    await chart.served.app.runtime.source(Candles).write("AAPL", TIMEFRAMES["15m"], closing_at(prices(60), step_s=900))
    code, _, data = await chart.refused("get_signals", symbol="AAPL", timeframe="5min")
    assert (code, data["available"]) == (-32003, ["15min", "1hour"])
    assert (await chart("get_signals", symbol="AAPL", timeframe="15min"))["source"] == "sqlite"


async def test_strictly_too_few_bars_are_the_specs_error(chart_at):
    chart = await chart_at(chart_errors="strict")
    await chart.fill("AAPL", closing_at(prices(10)))
    code, message, data = await chart.refused("get_signals", symbol="AAPL", timeframe="1min")
    assert (code, message.partition(":")[0]) == (-32001, "Insufficient data")
    assert data == {"symbol": "AAPL", "bars_available": 10, "bars_needed": 35}


async def test_failures_may_be_results_in_either_era(chart_at):
    chart = await chart_at(chart_errors="result")
    result = await chart.served.client.call_tool("get_signals", {"symbol": "?", "timeframe": "1min"})
    assert result.is_error


async def test_a_damaged_file_is_named(chart, tmp_path):
    await chart.fill("AAPL", closing_at(prices(60)))
    (tmp_path / "home/data/stocks/1min/AAPL_2026-01.parquet").write_bytes(b"torn")
    code, message, _ = await chart.refused("get_signals", symbol="AAPL", timeframe="1min")
    assert (code, "AAPL_2026-01.parquet is damaged" in message) == (-32004, True)


def test_the_fixture_makes_bars_that_close_when_it_says():
    assert rows(closing_at([1.0]))[0][0] == NOON_S - 60
