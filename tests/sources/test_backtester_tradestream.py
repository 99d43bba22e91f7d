"""Backtests by tradestream's own service: what it is sent, and what becomes of its figures."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.domain.candles import resampled
from quantdeck.domain.timeframes import MINUTE, TIMEFRAMES
from quantdeck.sources.backtester.grpc import fitting
from tests.support.backtester import BEGINS, NAMED, asking, begun, job, minutes, of_engine
from tests.support.bars import FAR, every, now, walk
from tests.support.ports import free_port
from tests.support.tradestream import peer


async def test_their_strategies_are_sent_in_their_own_message():
    async with peer() as theirs, asking(theirs.target) as source:
        await source.run(job(minutes(300), **NAMED), as_of=FAR)
    (asked,) = theirs.asked
    assert asked.strategy.parameters.type_url == "type.googleapis.com/strategies.SmaRsiParameters"
    assert not asked.HasField("job")
    assert theirs.numbers[0]["movingAveragePeriod"] == 30
    assert theirs.numbers[0]["oversoldThreshold"] == 25.5
    assert len(asked.candles) == 300
    assert asked.candles[0].timestamp.seconds == BEGINS
    assert asked.candles[0].currency_pair == "BTC/USD"
    assert [one.close for one in asked.candles] == minutes(300).close.tolist()


async def test_no_bar_that_closes_after_the_clock_is_sent():
    async with peer() as theirs, asking(theirs.target) as source:
        await source.run(job(minutes(300), **NAMED), as_of=now(BEGINS + 100 * 60 + 59))
    assert len(theirs.asked[0].candles) == 100


async def test_bars_that_are_too_many_for_a_message_are_made_coarser_and_are_whole():
    bars = minutes(70_003)
    async with peer() as theirs, asking(theirs.target) as source:
        await source.run(job(bars, **NAMED), as_of=FAR)
    sent = theirs.asked[0].candles
    wanted = resampled(bars[:70_000], TIMEFRAMES["5m"])
    assert len(sent) == 14_000
    assert [one.high for one in sent] == wanted.high.tolist()
    assert theirs.asked[0].ByteSize() < 4 * 2**20


async def test_the_finest_bars_that_fit_are_sent():
    """64 bytes a bar: 3.5 MiB have room for 57,000 of them."""
    async with peer() as theirs, asking(theirs.target) as source:
        for many, sent in ((57_000, 57_000), (58_000, 11_600)):
            await source.run(job(minutes(many), **NAMED), as_of=FAR)
            assert len(theirs.asked[-1].candles) == sent


@pytest.mark.parametrize(
    "most, length", [(10_000, "1m"), (9_999, "5m"), (1_999, "5m"), (1_998, "15m"), (164, "4h"), (5, "1d")]
)
def test_bars_are_made_no_coarser_than_they_must_be_and_of_whole_ones_only(most, length):
    """A week that begins and ends between two of any coarser length."""
    bars, found = ODD, fitting(ODD, MINUTE, most)
    seconds = found.timeframe.seconds
    assert (found.timeframe.name, len(found.bars) <= most) == (length, True)
    begins, ends = -(-int(bars.time[0]) // seconds) * seconds, (int(bars.time[-1]) + 60) // seconds * seconds
    assert found.bars.time.tolist() == list(range(begins, ends, seconds))
    first = (begins - int(bars.time[0])) // 60
    assert found.bars.high[0] == bars.high[first : first + seconds // 60].max()


def test_where_not_even_days_fit_that_is_said():
    with pytest.raises(QueryFailed, match="10,000 bars of 1m are more than a message to the backtester has room for"):
        fitting(ODD, MINUTE, 4)


ODD = walk(every(60, BEGINS + 7 * 60, 10_000))
HOURS = walk(every(3600, BEGINS, 500))


async def corrected(bars, timeframe="1m", *, on=True, **answer):
    async with peer() as theirs, asking(theirs.target, corrected=on) as source:
        theirs.answer |= answer
        return await source.run(job(bars, timeframe=TIMEFRAMES[timeframe], **NAMED), as_of=FAR)


@pytest.mark.parametrize("timeframe, factor", [("1m", 1.2035), ("5m", 0.538), ("1h", 0.155), ("1d", 0.032)])
async def test_their_annual_figures_are_mended_by_the_true_length_of_the_bars(timeframe, factor):
    seconds = TIMEFRAMES[timeframe].seconds
    found = await corrected(walk(every(seconds, BEGINS, 500)), timeframe)
    assert found.sharpe_ratio == pytest.approx(2.0 * factor, rel=0.01)
    assert found.sortino_ratio == pytest.approx(3.0 * factor, rel=0.01)
    assert found.volatility == pytest.approx(0.001 * math.sqrt(365 * 86400 / seconds))
    years = 500 * seconds / (365 * 86400)
    assert found.annualized_return == pytest.approx(1.25 ** (1 / years) - 1)
    assert (found.total_return, found.max_drawdown, found.win_rate, found.trades) == (0.25, 0.1, 0.6, 4)
    assert found.average_trade_duration_s == 12 * seconds


async def test_they_are_told_as_they_come_where_that_is_wanted():
    found = await corrected(HOURS, "1h", on=False)
    assert (found.sharpe_ratio, found.sortino_ratio, found.annualized_return, found.volatility) == (
        2.0,
        3.0,
        9.0,
        0.001,
    )


async def test_what_they_cannot_know_is_not_told():
    found = await corrected(HOURS, "1h")
    assert (found.alpha, found.beta, found.exposure, found.profit_factor) == (None, None, None, None)
    none = await corrected(HOURS, "1h", number_of_trades=0, win_rate=0.0, profit_factor=0.0, sharpe_ratio=0.0)
    assert (none.trades, none.win_rate, none.profit_factor, none.sharpe_ratio) == (0, None, None, None)


async def test_a_number_for_which_their_message_has_no_place_is_refused_and_not_forgotten():
    async with peer() as theirs, asking(theirs.target) as source:
        with pytest.raises(QueryFailed, match="SMA_RSI has no 'period', 'oversold' there; it has movingAveragePeriod"):
            await source.run(job(minutes(300)), as_of=FAR)
        assert not theirs.asked


async def test_a_strategy_that_they_run_with_fixed_numbers_is_not_run_with_others():
    bands: dict[str, Any] = {
        "name": "BOLLINGER_BANDS",
        "parameters": [
            {"name": "period", "type": "INTEGER", "min": 10, "max": 50, "defaultValue": 20},
            {"name": "oversold", "type": "DOUBLE", "min": 1, "max": 3, "defaultValue": 2},
        ],
    }
    async with peer() as theirs, asking(theirs.target) as source:
        with pytest.raises(QueryFailed, match="BOLLINGER_BANDS is always run with period 20, multiplier 2 there"):
            await source.run(job(minutes(300), **bands), as_of=FAR)
        assert not theirs.asked


async def test_a_name_that_they_do_not_know_is_refused_in_our_words():
    async with peer() as theirs, asking(theirs.target) as source:
        with pytest.raises(QueryFailed, match="The backtester cannot run this strategy") as told:
            await source.run(job(minutes(300), name="OWN_IDEA"), as_of=FAR)
    assert "secret" not in str(told.value)
    assert "secret" in str(told.value.__cause__)
    sent = theirs.asked[0].strategy.parameters
    assert sent.type_url == "type.googleapis.com/strategies.ConfigurableStrategyParameters"


async def test_one_service_in_the_place_of_another_is_spoken_to_in_its_own_way(tmp_path):
    port = free_port()
    asked = job(minutes(400), **NAMED)
    async with asking(f"127.0.0.1:{port}", connect_s=0.5) as source:

        async def answered() -> Any:
            while True:  # what answered until now may be gone for a moment
                try:
                    return await source.run(asked, as_of=FAR)
                except Unreachable:
                    await asyncio.sleep(0.01)

        async with peer(f"127.0.0.1:{port}"):
            assert (await answered()).total_return == 0.25
        with begun(tmp_path, port=port):
            assert await answered() == of_engine(asked)
        with pytest.raises(Unreachable):
            await source.run(asked, as_of=FAR)
        async with peer(f"127.0.0.1:{port}") as theirs:
            assert (await answered()).total_return == 0.25
            assert not any(one.HasField("job") for one in theirs.asked)  # which they would read as an empty one
