"""The port of backtests, on every adapter: what the engine says of the bars that had closed, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import numpy as np
import pytest

from quantdeck.backtesting.engine import Costs, Terms, run, sound
from quantdeck.connections.grpc import Channels, Place
from quantdeck.domain.calendars import NYSE
from quantdeck.domain.candles import Bars, joined
from quantdeck.domain.strategy_specs import UnfitParametersError
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.settings import Grpc
from quantdeck.sources.backtester import Backtester
from quantdeck.sources.backtester.grpc import OverGrpc
from quantdeck.sources.backtester.inprocess import SMALL, InProcess
from tests.support.backtester import BEGINS, Service, begun, job, minutes, of_engine
from tests.support.bars import FAR, every, now, walk
from tests.support.specs import CROSSING

LARGE = SMALL // 3 + 1  # bars for two indicators that are too much for a thread


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with begun(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(params=["inprocess", "grpc"])
async def backtester(request: pytest.FixtureRequest) -> AsyncIterator[Backtester]:
    if request.param == "inprocess":
        yield InProcess(2)
        return
    place, options = Place(request.getfixturevalue("service").target), Grpc()
    source = OverGrpc(Channels(place, options), options)
    yield source
    await source.close()


@pytest.mark.parametrize("many", [1, 2, 500, LARGE])
async def test_a_backtest_is_what_the_engine_says(backtester, many):
    asked = job(minutes(many), {"period": 12})
    assert await backtester.run(asked, as_of=FAR) == of_engine(asked)


async def test_it_trades(backtester):
    """Or the tests of this file would show little."""
    asked = job(
        minutes(500),
        exit_conditions=[{"type": "TRAILING_STOP_LOSS", "params": {"percentage": 0.1}}],
        entry_conditions=[{"type": "OVER", "indicator": "close", "params": {"other": "sma"}}],
    )
    found = await backtester.run(asked, as_of=FAR)
    assert found == of_engine(asked)
    assert found.trades > 10
    assert found.average_trade_duration_s > 60


@pytest.mark.parametrize("many", [1, 2, *range(480, 500), LARGE])
async def test_the_whole_of_it_has_the_same_trades_and_curve_wherever_it_is_run(backtester, many):
    bars = minutes(many)
    bars.high[::97] = np.nan
    asked = job(bars, **CROSSING)
    found, made = await backtester.whole(asked, as_of=FAR), run(asked.spec.instantiate(), bars, asked.terms)
    assert (found.metrics, found.decision, found.left_out) == (made.metrics, made.decision, made.left_out)
    assert found.trades.rows() == made.trades.rows()
    assert (found.equity.tolist(), found.time.tolist()) == (made.equity.tolist(), made.time.tolist())
    assert many < 400 or len(made.trades) > 10


async def test_no_bar_that_closes_after_the_clock_is_seen(backtester):
    bars = minutes(400)
    for seconds, seen in ((300 * 60, 300), (301 * 60 - 1, 300), (0, 0), (10**6, 400)):
        found = await backtester.run(job(bars), as_of=now(BEGINS + seconds))
        assert found == of_engine(job(bars[:seen]))


async def test_what_is_after_the_clock_does_not_matter_whatever_it_is(backtester):
    bars, clock = minutes(300), now(BEGINS + 300 * 60)
    opens = every(60, BEGINS + 300 * 60, 50)
    wild = Bars.of(opens, *(np.full(50, value) for value in (1e6, 1e7, 1e-7, 1e6, 1e9)))
    told = [await backtester.run(job(joined([bars, later])), as_of=clock) for later in (Bars.none(), walk(opens), wild)]
    assert told[0] == told[1] == told[2] == of_engine(job(bars))


async def test_numbers_with_which_nothing_can_be_computed_are_said(backtester):
    with pytest.raises(UnfitParametersError, match=r"period.*'wrong' is no parameter|'wrong' is no parameter"):
        await backtester.run(job(minutes(10), {"period": 0, "wrong": 1}), as_of=FAR)
    with pytest.raises(UnfitParametersError, match="period"):
        await backtester.run(job(minutes(10), {"period": 0}), as_of=FAR)


async def test_bars_that_are_none_are_as_if_they_were_missing(backtester):
    bars = minutes(300)
    close, volume = bars.close.copy(), bars.volume.copy()
    close[[3, 120]], volume[200] = (np.nan, -1.0), np.inf
    holed = replace(bars, close=close, volume=volume)
    assert len(sound(holed)) == 297
    assert await backtester.run(job(holed), as_of=FAR) == of_engine(job(holed))
    nothing = replace(bars, close=np.zeros(300))
    assert await backtester.run(job(nothing), as_of=FAR) == of_engine(job(nothing))


async def test_the_terms_count(backtester):
    terms = Terms(NYSE, 250.0, Costs(0.002, 0.003), 0.04)
    asked = replace(job(walk(every(3600, BEGINS, 900)), timeframe=TIMEFRAMES["1h"]), terms=terms)
    found = await backtester.run(asked, as_of=FAR)
    assert found == of_engine(asked)
    assert found != of_engine(replace(asked, terms=Terms()))


async def test_gaps_stay_gaps(backtester):
    opens = [at for at in every(60, BEGINS, 600) if at // 60 % 7]
    assert await backtester.run(job(walk(opens)), as_of=FAR) == of_engine(job(walk(opens)))


async def test_eight_at_once_are_each_answered_their_own(backtester):
    jobs = [job(minutes(LARGE if number % 4 == 0 else 400, seed=number)) for number in range(8)]
    found = await asyncio.gather(*(backtester.run(one, as_of=FAR) for one in jobs))
    assert found == [of_engine(one) for one in jobs]


async def test_whoever_stops_waiting_gets_no_answer_and_harms_no_other(backtester):
    waiting = asyncio.ensure_future(backtester.run(job(minutes(LARGE)), as_of=FAR))
    await asyncio.wait([waiting], timeout=0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await backtester.run(job(minutes(300)), as_of=FAR) == of_engine(job(minutes(300)))
