"""`quantdeck collect demo`: the demo market in a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quantdeck.collectors.demo import copied
from quantdeck.domain.timeframes import MINUTE
from quantdeck.sources.candles import Candles
from quantdeck.sources.candles.demo import DemoCandles
from tests.support.bars import at, now, rows, walk
from tests.support.candle_stores import KINDS, Place
from tests.support.program import quantdeck

THURSDAY = now(at("2026-01-15T15:30") + 17)
CLOCK = {"QUANTDECK_CLOCK": "2026-01-15T15:30:17Z"}


@pytest.fixture(params=[pytest.param(name, marks=KINDS[name].marks) for name in ("embedded", "influxdb")])
async def store(request, tmp_path) -> AsyncIterator[Candles]:
    place: Place = await KINDS[request.param].make(tmp_path / "place")
    async with place.open() as opened:
        yield opened


async def collect(store: Candles, symbol: str, days: int, *, steps: int | None = None, as_of=THURSDAY, seed=7) -> int:
    """How many bars were written; broken off after so many steps."""
    written = 0
    async for bars in copied(symbol, store, seed=seed, days=days, now=as_of):
        written += bars
        steps = None if steps is None else steps - 1
        if steps == 0:
            break
    return written


async def held(store: Candles, symbol: str) -> list[tuple[float, ...]]:
    return rows(await store.newest(symbol, MINUTE, 10**6, as_of=THURSDAY))


async def market(symbol: str, days: int) -> list[tuple[float, ...]]:
    since = now(MINUTE.floor(THURSDAY.timestamp()) - days * 86_400)
    return rows(await DemoCandles.of(7).between(symbol, MINUTE, since, THURSDAY, as_of=THURSDAY))


@pytest.mark.parametrize("symbol", ["ETH/USD", "AAPL", "XAU/USD"])
async def test_the_store_has_the_market_of_those_days_and_nothing_else(store, symbol):
    written = await collect(store, symbol, 3)
    assert await held(store, symbol) == await market(symbol, 3)
    assert written == len(await market(symbol, 3))
    assert await collect(store, symbol, 3) == 0


async def test_what_was_broken_off_is_gone_on_with_and_nothing_is_missing(store):
    earlier = now(THURSDAY.timestamp() - 86_400 * 2.3)
    await collect(store, "AAPL", 4, as_of=earlier)
    for steps in (1, 2):  # the present first, then back from where it began
        await collect(store, "AAPL", 35, steps=steps)
    assert 0 < await collect(store, "AAPL", 35) < 0.8 * len(await market("AAPL", 35))
    assert await held(store, "AAPL") == await market("AAPL", 35)


async def test_a_copy_that_is_older_than_the_days_asked_for_is_gone_on_with_too(store):
    await collect(store, "BTC/USD", 1, as_of=now(THURSDAY.timestamp() - 86_400 * 4))
    await collect(store, "BTC/USD", 1)
    assert await held(store, "BTC/USD") == await market("BTC/USD", 5)


async def test_bars_that_are_somebodys_stay(store):
    real = walk([at("2026-01-15T15:00")])
    await store.write("BTC/USD", MINUTE, real)
    with pytest.raises(Exception, match="not the demo market's of this seed"):
        await collect(store, "BTC/USD", 1)
    assert await held(store, "BTC/USD") == rows(real)
    await collect(store, "ETH/USD", 1)
    with pytest.raises(Exception, match="not the demo market's of this seed"):
        await collect(store, "ETH/USD", 1, seed=8)


def test_a_home_of_ones_own_can_be_asked_afterwards(tmp_path):
    done = quantdeck("collect", "demo", "--days", "2", "--symbols", "BTC/USD,AAPL", home=tmp_path, environment=CLOCK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        " 1 of 2  BTC/USD      2,880 bars",
        " 2 of 2  AAPL         1,920 bars",
        "4,800 bars of the demo market are new in sqlite, which answers name as their source: none of them is real",
    ]
    told = quantdeck("call", "get_current_price", '{"symbol": "AAPL"}', home=tmp_path, environment=CLOCK)
    assert '"timestamp":"2026-01-15T15:29:00Z"' in told.stdout


def test_a_demo_world_computes_it_already_and_takes_it_only_where_told(tmp_path):
    assert quantdeck("demo", "--days", "1", "--quiet", home=tmp_path, environment=CLOCK).returncode == 0
    refused = quantdeck("collect", "demo", "--days", "1", home=tmp_path, environment=CLOCK)
    assert (refused.returncode, "computes this market already" in refused.stderr) == (2, True)
    assert not Path(tmp_path, "market.db").exists()
    done = quantdeck("collect", "demo", "--days", "1", "--symbols", "BTC/USD", "--into-demo", "--quiet",
                     home=tmp_path, environment=CLOCK)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    stored = {**CLOCK, "QUANTDECK_CANDLES": "embedded"}
    told = quantdeck("call", "get_current_price", '{"symbol": "BTC/USD"}', home=tmp_path, environment=stored)
    assert '"source":"demo"' in told.stdout
    real = {**CLOCK, "QUANTDECK_CANDLES": "influxdb://h/b"}
    mixed = quantdeck("collect", "demo", home=tmp_path, environment=real)
    assert (mixed.returncode, "demo world" in mixed.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments, candles, said",
    [
        (["--days", "-1"], "", "whole number from 0 to 3650"),
        (["--days", "4000"], "", "whole number from 0 to 3650"),
        (["--symbols", "BTC/USD,DOGE/USD"], "", "no 'DOGE/USD'"),
        ([], "tea://leaves", "may begin with"),
        ([], "demo", "not marked as one"),
        ([], "influxdb://127.0.0.1:1/b", "down or out of reach"),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_in_a_sentence(tmp_path, arguments, candles, said):
    done = quantdeck("collect", "demo", *arguments, home=tmp_path, environment={"QUANTDECK_CANDLES": candles})
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert said in done.stderr
