"""The demo's own specs on the demo's own market: each runs, and what it comes to is that of the bar-by-bar loop."""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np
import orjson
import pytest

from quantdeck.backtesting.engine import Terms, run
from quantdeck.backtesting.engine.figures import computed
from quantdeck.domain.arrays import listed
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import joined, resampled
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.spec_reader import read
from quantdeck.domain.timeframes import TIMEFRAMES
from tests.backtesting.plain_backtest import Loop, figures_of
from tests.backtesting.plain_figures import plain

SPECS: list[dict[str, Any]] = orjson.loads(files("quantdeck.demo").joinpath("specs.json").read_bytes())
DAYS = 20
MARKET = DemoMarket(7, shape_of)


@pytest.mark.parametrize("symbol, per_year", [("BTC/USD", 365 * 24.0), ("AAPL", 1741.0)])
@pytest.mark.parametrize("said", SPECS, ids=lambda one: str(one["name"]))
def test_a_demo_spec_does_what_the_plain_loop_does(said, symbol, per_year):
    made = read(**{key: value for key, value in said.items() if key != "complexity"}).spec
    assert made is not None
    minutes = joined([MARKET.day(INSTRUMENTS[symbol], 20_150 + day) for day in range(DAYS)])  # in March 2025
    bars = resampled(minutes, TIMEFRAMES["1h"])
    rows = list(zip(*(one.tolist() for one in list(bars.columns())[1:]), strict=True))
    spec = made.instantiate()
    figures = {name: listed(one) for name, one in computed(spec, bars).items()}
    for one in spec.computations:
        source = figures[one.input] if one.input in figures else getattr(bars, one.input).tolist()
        wanted = plain(one.type, rows, source, one.numbers)
        mine, theirs = (np.array(each, dtype=float) for each in (figures[one.id], wanted))
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-7)
    loop = Loop(spec, rows, figures, 10_000.0, 0.001, 0.0).run()
    found = run(spec, bars, Terms(market=market_of(symbol)))
    assert found.trades.begins.tolist() == [trade.entry for trade in loop.trades]
    told = asdict(found.metrics)
    for name, value in figures_of(loop, 10_000.0, per_year).items():
        assert told[name] == (None if value is None else pytest.approx(value, rel=1e-8, abs=1e-12)), name


def test_they_trade_but_for_one_that_contradicts_itself():
    hours = resampled(joined([MARKET.day(INSTRUMENTS["BTC/USD"], 20_150 + day) for day in range(60)]), TIMEFRAMES["1h"])
    idle = set()
    for said in SPECS:
        made = read(**{key: value for key, value in said.items() if key != "complexity"}).spec
        assert made is not None
        if not run(made.instantiate(), hours).trades:
            idle.add(said["name"])
    assert idle == {"SMA_RSI"}  # it buys above the mean of 20 closes when 14 of them have fallen
