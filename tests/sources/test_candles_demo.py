"""The demo market behind the port: computed alike however it is asked, and served in a demo world only.

What its bars are like: tests/domain/test_demo_market.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from quantdeck.app import open_app
from quantdeck.connections.databases import Databases
from quantdeck.core.errors import NotConfigured, QueryFailed, Unreachable
from quantdeck.domain.candles import resampled
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.servers import load
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles, Storage, demo
from tests.support.bars import at, now, rows, walk
from tests.support.leaks import reads_of

THURSDAY = now(at("2026-01-15T15:30"))
"""In the middle of New York's day."""
HOUR = TIMEFRAMES["1h"]

each_timeframe = pytest.mark.parametrize("timeframe", TIMEFRAMES.values(), ids=str)


def world(home: Path, seed: int = 7) -> Settings:
    home.mkdir(exist_ok=True)
    settings = Settings(home=home)
    settings.demo_mark.write_text(f'{{"seed": {seed}, "days": 1}}')
    return settings


@pytest.fixture
async def candles(tmp_path) -> AsyncIterator[Candles]:
    settings = world(tmp_path / "world")
    opened = demo.connect("", settings, Databases(settings))
    yield opened
    await opened.close()


async def test_it_has_every_instrument_and_nothing_else(candles):
    assert await candles.symbols(as_of=THURSDAY) == sorted(INSTRUMENTS)
    assert await candles.series("DOGE/USD", as_of=THURSDAY) is None
    assert len(await candles.newest("DOGE/USD", HOUR, 10, as_of=THURSDAY)) == 0
    assert await candles.count("DOGE/USD", HOUR, as_of=THURSDAY) == 0


@pytest.mark.parametrize("symbol", ["ETH/USD", "AAPL", "XAU/USD"])
@each_timeframe
async def test_no_read_has_what_closed_later_and_each_says_the_same_of_the_past(candles, symbol, timeframe):
    """There is nothing to write here: whatever is asked as of an instant must be the beginning of what comes to be."""
    assert reads_of(type(candles), no_reads={"write", "forget", "snapshot"}) == {
        "symbols", "series", "between", "newest", "count", "page", "store_of", "storage",
    }  # fmt: skip
    since, later = THURSDAY - timedelta(days=4), now(THURSDAY.timestamp() + 6 * 86_400)
    whole = rows(await candles.between(symbol, timeframe, since, later, as_of=later))
    late_s = INSTRUMENTS[symbol].late_s
    for second in (0, 59.999999, 86_400 * 0.3):
        as_of = now(THURSDAY.timestamp() + second)
        known = [bar for bar in whole if bar[0] + timeframe.seconds <= as_of.timestamp() - late_s]
        assert rows(await candles.between(symbol, timeframe, since, later, as_of=as_of)) == known
        assert rows(await candles.newest(symbol, timeframe, 3, as_of=as_of)) == known[-3:]
        counted = [await candles.count(symbol, timeframe, as_of=instant) for instant in (as_of, later)]
        assert counted[1] - counted[0] == len(whole) - len(known) > 0
        page, total = await candles.page(symbol, timeframe, 2, skip=1, as_of=as_of)
        assert (rows(page), total) == (known[-3:-1], counted[0])
        minutes = await candles.newest(symbol, MINUTE, 1, as_of=as_of)
        series = await candles.series(symbol, as_of=as_of)
        assert series.last_s == minutes.time[-1] <= as_of.timestamp() - late_s - 60
        assert await candles.store_of(symbol, as_of=as_of) is candles
        assert await candles.storage(as_of=as_of) == Storage("demo")  # it is computed, so it takes no room


@pytest.mark.parametrize("symbol", ["ETH/USD", "AAPL", "EUR/USD"])
@pytest.mark.parametrize("timeframe", [MINUTE, TIMEFRAMES["15m"], HOUR, DAY], ids=str)
async def test_it_counts_as_many_as_it_gives_and_pages_have_each_once(candles, symbol, timeframe):
    as_of = now(at("2020-01-20T10:17"))  # soon after it begins
    whole = rows(await candles.newest(symbol, timeframe, 10**6, as_of=as_of))
    assert await candles.count(symbol, timeframe, as_of=as_of) == len(whole)
    assert whole[0][0] >= at("2020-01-01T00:00")
    size = max(len(whole) // 7, 1)
    for skip in (0, 1, size, len(whole) - 1, len(whole), len(whole) + 5):
        page = rows(await candles.newest(symbol, timeframe, size, skip=skip, as_of=as_of))
        end = max(len(whole) - skip, 0)
        assert page == whole[max(end - size, 0) : end]
    minutes = await candles.newest(symbol, MINUTE, 10**6, as_of=as_of)
    end_s = timeframe.floor(as_of.timestamp())
    assert whole == rows(resampled(minutes.between(0, end_s), timeframe))


async def test_before_it_began_there_is_nothing(candles):
    before = now(at("2020-01-01T00:00") + 59)
    assert await candles.symbols(as_of=before) == []
    assert await candles.count("BTC/USD", MINUTE, as_of=before) == 0
    assert await candles.count("BTC/USD", MINUTE, as_of=now(before.timestamp() + 1)) == 1


async def test_two_homes_of_one_seed_agree_and_of_two_seeds_do_not(candles, tmp_path):
    asked = ("BTC/USD", HOUR, 24)
    mine = rows(await candles.newest(*asked, as_of=THURSDAY))
    for seed, same in ((7, True), (8, False)):
        settings = world(tmp_path / f"other {seed}", seed)
        other = demo.connect("", settings, Databases(settings))
        assert (rows(await other.newest(*asked, as_of=THURSDAY)) == mine) is same


async def test_a_home_that_is_no_demo_world_says_how_to_make_one(tmp_path):
    settings = Settings(home=tmp_path)
    with pytest.raises(NotConfigured, match="quantdeck demo"):
        demo.connect("demo:", settings, Databases(settings))


async def test_a_world_that_is_made_anew_is_the_new_one_and_one_that_is_gone_is_said_to_be(candles, tmp_path):
    asked = ("BTC/USD", HOUR, 24)
    first = rows(await candles.newest(*asked, as_of=THURSDAY))
    settings = world(tmp_path / "world", seed=8)
    assert rows(await candles.newest(*asked, as_of=THURSDAY)) != first
    settings.unfinished_demo_mark.touch()
    with pytest.raises(Unreachable, match="not finished"):
        await candles.ping()
    settings.unfinished_demo_mark.unlink()
    settings.demo_mark.unlink()
    with pytest.raises(Unreachable, match="no more"):
        await candles.newest(*asked, as_of=THURSDAY)
    world(tmp_path / "world")
    assert rows(await candles.newest(*asked, as_of=THURSDAY)) == first


async def test_nothing_can_be_written_into_it_or_removed(candles):
    with pytest.raises(QueryFailed, match="computed and takes no bars"):
        await candles.write("BTC/USD", MINUTE, walk([MINUTE.floor(THURSDAY.timestamp())]))
    with pytest.raises(QueryFailed, match="computed"):
        await candles.forget("BTC/USD")


# What is planted, as the tools tell it.


async def asked(home: Path, clock: str, tool: str, **arguments):
    settings = Settings(home=home, clock=clock)
    async with open_app(settings, (load("market-data-mcp"),)) as app:
        contract = app.tool(tool)
        assert contract is not None
        answer = await app.call(contract, arguments)
    return orjson.loads(answer.encoded)


@pytest.mark.parametrize(
    "clock, code",
    [
        ("2026-01-15T15:30:00Z", "STALE_DATA"),  # a Thursday
        ("2026-01-17T15:30:00Z", None),  # a Saturday: its market has been closed for longer than it is late
    ],
)
async def test_gold_is_three_hours_late_which_is_stale_while_it_trades(tmp_path, clock, code):
    world(tmp_path / "world")
    body = await asked(tmp_path / "world", clock, "get_current_price", symbol="XAU/USD")
    assert body.get("error", {}).get("code") == code
    if code:
        assert body["error"]["details"]["age_seconds"] == 3 * 3600


async def test_ether_lacks_half_an_hour_of_every_wednesday(tmp_path):
    world(tmp_path / "world")
    asking = {"symbol": "ETH/USD", "timeframe": "1m", "limit": 120}
    body = await asked(tmp_path / "world", "2026-01-14T03:30:00Z", "get_candles", **asking)
    opens = [bar["timestamp"][11:16] for bar in body["data"]["items"]]
    assert (opens[59], opens[60]) == ("01:59", "02:30")
    assert body["_metadata"]["source"] == "demo"
