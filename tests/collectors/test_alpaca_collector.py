"""The Alpaca collector against the stub: what it stores, and what it does when things go wrong."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from quantdeck.collectors.alpaca.collector import Collector, Hopeless
from quantdeck.collectors.alpaca.feed import pause
from quantdeck.collectors.alpaca.memory import LIMIT, Memory
from quantdeck.collectors.alpaca.owed import Owed
from quantdeck.core.errors import NotConfigured
from quantdeck.domain.candles import Bars
from quantdeck.domain.timeframes import DAY, MINUTE
from quantdeck.settings import Alpaca
from quantdeck.sources.candles import Candles
from tests.support.alpaca_market import message
from tests.support.alpaca_stub import KEY, SECRET, AlpacaStub, alpaca
from tests.support.bars import FAR, every, rows, walk
from tests.support.candle_stores import EmbeddedPlace

QUICK = {"backoff_s": 0.02, "backoff_max_s": 0.1, "flush_s": 0.1, "timeout_s": 5}
STOCKS, COINS = "/v2/iex", "/v1beta3/crypto/us"


@pytest.fixture
def stub() -> Iterator[AlpacaStub]:
    with alpaca() as made:
        yield made


def recent(many: int, *, ago: int = 0, seed: int = 7) -> Bars:
    """So many bars, of which the last closed so many minutes ago."""
    return walk(every(60, MINUTE.floor(time.time()) - 60 * (many + ago), many), seed=seed)


async def until(holds: Callable[[], Any]) -> None:
    """Wait until something holds; the test's own timeout ends a vain wait."""
    while not holds():  # noqa: ASYNC110 - what it waits for is on another thread
        await asyncio.sleep(0.005)


class Collecting:
    """A collector that runs, its store, and how it ends."""

    def __init__(self, collector: Collector, store: Candles) -> None:
        self.collector = collector
        self.store = store
        self.task = asyncio.create_task(collector.run())

    async def stored(self, symbol: str) -> list[tuple[Any, ...]]:
        try:
            return rows(await self.store.newest(symbol, MINUTE, 10**6, as_of=FAR))
        except NotConfigured:  # nothing was written so far
            return []

    async def until_stored(self, symbol: str, *expected: Bars) -> None:
        whole = [row for part in expected for row in rows(part)]
        while await self.stored(symbol) != whole:
            assert not self.task.done(), self.task
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError, Hopeless):
            await self.task


@asynccontextmanager
async def made(
    stub: AlpacaStub, home: Path, *symbols: str, days: int = 2, **said: Any
) -> AsyncIterator[tuple[Any, Any]]:
    given = {"api_key": KEY, "secret_key": SECRET, "data_url": stub.data_url, "stream_url": stub.stream_url}
    settings = Alpaca.model_validate({**given, **QUICK, **said})
    async with EmbeddedPlace(home).open() as store:
        collector = Collector(settings, store, Owed(home / "alpaca.json", "here"), days=days)
        assert await collector.add(symbols) == []
        try:
            yield collector, store
        finally:
            await collector.close()


@asynccontextmanager
async def collecting(stub: AlpacaStub, home: Path, *symbols: str, **said: Any) -> AsyncIterator[Collecting]:
    async with made(stub, home, *symbols, **said) as (collector, store):
        running = Collecting(collector, store)
        try:
            yield running
        finally:
            await running.stop()


def listened(stub: AlpacaStub, *symbols: str) -> Callable[[], bool]:
    return lambda: stub.do(lambda: stub.stream.subscribed() >= set(symbols))


async def test_the_past_is_filled_in_and_what_comes_is_added(stub, tmp_path):
    past, coins, new = recent(300, ago=3), recent(300, ago=3, seed=1), recent(3)
    stub.reveal("AAPL", past)
    stub.reveal("BTC/USD", coins)
    async with collecting(stub, tmp_path, "AAPL", "BTC/USD", "SILENT") as running:
        await running.until_stored("AAPL", past)
        await running.until_stored("BTC/USD", coins)
        await until(listened(stub, "AAPL", "BTC/USD", "SILENT"))
        stub.reveal("AAPL", new, asked=False)
        await running.until_stored("AAPL", past, new)
        assert await running.store.series("SILENT", as_of=FAR) is None
    assert stub.stream.most_connected == 1
    assert stub.do(lambda: [sorted(set(said)) for said in stub.stream.heard]) == [["action", "bars", "updatedBars"]] * 2


async def test_a_correction_replaces_its_bar_also_where_it_came_in_disorder_and_twice(stub, tmp_path):
    first, better = recent(20), recent(20, seed=9)
    async with collecting(stub, tmp_path, "AAPL") as running:
        await until(listened(stub, "AAPL"))
        for part in (first[10:], first[:10], first[5:15]):
            stub.reveal("AAPL", part, asked=False)
        stub.reveal("AAPL", better[3:8], kind="u", asked=False)
        stub.reveal("AAPL", better[3:8], kind="u", asked=False)
        await running.until_stored("AAPL", first[:3], better[3:8], first[8:])


async def test_what_was_missed_while_the_connection_was_broken_is_filled_in(stub, tmp_path):
    bars = recent(60)
    stub.reveal("AAPL", bars[:20])
    async with collecting(stub, tmp_path, "AAPL") as running:
        await running.until_stored("AAPL", bars[:20])
        await until(listened(stub, "AAPL"))
        stub.do(stub.stream.drop)
        stub.reveal("AAPL", bars[20:59], streamed=False)
        await running.until_stored("AAPL", bars[:59])
        await until(listened(stub, "AAPL"))
        stub.reveal("AAPL", bars[59:], asked=False)
        await running.until_stored("AAPL", bars)
    assert (stub.stream.accepted, stub.stream.most_connected) == (2, 1)


async def test_a_correction_that_was_missed_is_fetched(stub, tmp_path):
    bars, better = recent(30), recent(30, seed=3)
    stub.reveal("AAPL", bars)
    async with collecting(stub, tmp_path, "AAPL") as running:
        await running.until_stored("AAPL", bars)
        stub.do(stub.stream.drop)
        stub.reveal("AAPL", better[27:], streamed=False)
        await running.until_stored("AAPL", bars[:27], better[27:])


async def test_what_the_stream_said_meanwhile_is_later_than_what_rest_says(stub, tmp_path):
    bars, better = recent(10), recent(10, seed=3)
    stub.reveal("AAPL", bars)
    stub.market.failing = [message(500, "x")] * 2  # so that the stream comes first
    async with collecting(stub, tmp_path, "AAPL", backoff_s=0.3, backoff_max_s=0.3) as running:
        await until(listened(stub, "AAPL"))
        stub.reveal("AAPL", better[6:8], kind="u", asked=False)
        await running.until_stored("AAPL", bars[:6], better[6:8], bars[8:])


@pytest.mark.parametrize("code", [400, 401, 403, 404, 406, 407, 408, 410, 500])
async def test_after_a_refusal_that_may_heal_it_comes_again_later(stub, tmp_path, code, caplog):
    stub.stream.refusing = [code, code]
    bars = recent(5)
    async with collecting(stub, tmp_path, "AAPL") as running:
        await until(listened(stub, "AAPL"))
        stub.reveal("AAPL", bars, asked=False)
        await running.until_stored("AAPL", bars)
        lost = [record.fields for record in caplog.records if record.msg == "alpaca_stream_lost"]
        assert [told["code"] for told in lost] == [code, code]
        assert all(told["again_in_s"] <= 0.1 for told in lost)
        stub.do(lambda: stub.stream.fail(code))  # now in the middle of it
        await until(lambda: stub.stream.accepted >= 2)
    assert stub.stream.most_connected == 1


@pytest.mark.parametrize("code, said", [(402, "look at ALPACA_API_KEY"), (409, "plan does not cover")])
async def test_a_refusal_that_cannot_heal_ends_it_with_a_sentence(stub, tmp_path, code, said):
    stub.stream.refusing = [code]
    async with collecting(stub, tmp_path, "AAPL") as running:
        with pytest.raises(Hopeless, match=said):
            await running.task
    assert stub.stream.connects == 1


async def test_a_wrong_key_and_a_feed_that_the_plan_lacks_end_it(stub, tmp_path):
    async with collecting(stub, tmp_path, "AAPL", secret_key="wrong") as running:
        with pytest.raises(Hopeless, match="refused the key"):
            await running.task
    async with collecting(stub, tmp_path, "AAPL", feed="sip") as running:
        with pytest.raises(Hopeless, match="plan does not cover"):
            await running.task


async def test_what_is_in_memory_is_stored_before_it_gives_up(stub, tmp_path):
    bars = recent(5)
    async with collecting(stub, tmp_path, "AAPL", flush_s=3600) as running:
        await until(listened(stub, "AAPL"))
        stub.reveal("AAPL", bars, asked=False)
        await until(lambda: len(running.collector.memory) == 5)
        stub.do(lambda: stub.stream.fail(409))
        with pytest.raises(Hopeless):
            await running.task
        assert await running.stored("AAPL") == rows(bars)


async def test_a_place_that_lingers_is_waited_for(tmp_path):
    with alpaca(lingers_s=0.3) as stub:
        async with collecting(stub, tmp_path, "AAPL"):
            await until(listened(stub, "AAPL"))
            stub.do(stub.stream.drop)
            await until(lambda: stub.stream.accepted == 2)
        assert stub.stream.connects > 3
        assert stub.stream.most_connected == 1


async def test_a_storm_of_connections_that_is_refused_at_the_door_is_waited_out(stub, tmp_path):
    stub.stream.upgrades = [429, 429, 502]
    async with collecting(stub, tmp_path, "AAPL"):
        await until(listened(stub, "AAPL"))
    assert stub.stream.connects == 4


async def test_a_stream_that_is_silent_while_bars_are_made_is_left(stub, tmp_path, caplog):
    bars = recent(40)
    stub.reveal("AAPL", bars[:10])
    stub.stream.mute = True
    async with collecting(stub, tmp_path, "AAPL", stall_s=0.1) as running:
        await running.until_stored("AAPL", bars[:10])
        await until(listened(stub, "AAPL"))
        stub.reveal("AAPL", bars[10:])
        await running.until_stored("AAPL", bars)
        await until(lambda: stub.stream.accepted >= 2)
    lost = [record.fields["why"] for record in caplog.records if record.msg == "alpaca_stream_lost"]
    assert lost[0] == "nothing came for 0.1 s while bars were made"


async def test_a_stream_that_is_silent_because_nothing_is_traded_is_kept(stub, tmp_path):
    stub.reveal("AAPL", recent(10, ago=100))
    async with collecting(stub, tmp_path, "AAPL", stall_s=0.05):
        await until(listened(stub, "AAPL"))
        before = len(stub.market.heard)
        await until(lambda: len(stub.market.heard) > before + 4)
    assert stub.stream.accepted == 1


async def test_symbols_that_the_plan_has_no_room_for_are_asked_for(tmp_path, caplog):
    names = [f"A{letter}" for letter in "ABCDEFGHIJ"]
    with alpaca(most_symbols=7) as stub:
        bars = recent(10)
        async with collecting(stub, tmp_path, *names) as running:
            await until(lambda: stub.do(lambda: len(stub.stream.subscribed())) == 7)
            await until(lambda: running.collector.feeds[False].connected)
            for name in names:
                stub.reveal(name, bars)
            for name in names:
                await running.until_stored(name, bars)
            assert len(running.collector.feeds[False].unheard) == 3
        assert stub.stream.accepted == 1
    assert "alpaca_symbol_limit" in [record.msg for record in caplog.records]


async def test_a_name_that_alpaca_refuses_takes_no_other_with_it(stub, tmp_path, caplog):
    bars = recent(10)
    stub.reveal("AAPL", bars)
    stub.do(lambda: stub.market.refused.add("NOPE"))
    async with collecting(stub, tmp_path, "NOPE", "AAPL") as running:
        await running.until_stored("AAPL", bars)
        await until(lambda: running.collector.watchlist.symbols == ("AAPL",))
    assert "alpaca_refused_symbol" in [record.msg for record in caplog.records]


async def test_symbols_that_come_later_are_filled_and_heard_on_the_same_connection(stub, tmp_path):
    bars = recent(20)
    stub.reveal("MSFT", bars[:19])
    async with collecting(stub, tmp_path, "AAPL") as running:
        await until(listened(stub, "AAPL"))
        assert await running.collector.add(["MSFT", "AAPL"]) == []
        await until(listened(stub, "AAPL", "MSFT"))
        await running.until_stored("MSFT", bars[:19])
        stub.reveal("MSFT", bars[19:], asked=False)
        await running.until_stored("MSFT", bars)
    assert stub.stream.accepted == 1


async def test_the_minute_that_is_not_over_is_left_for_the_stream(stub, tmp_path):
    bars = walk(every(60, MINUTE.floor(time.time()) - 300, 7))
    stub.reveal("AAPL", bars)
    async with made(stub, tmp_path, "AAPL") as (collector, store):
        before = MINUTE.floor(time.time())
        await collector.fill()
        stored = (await store.newest("AAPL", MINUTE, 100, as_of=FAR)).time
        assert before - 60 <= int(stored[-1]) < MINUTE.floor(time.time())


async def test_earlier_days_are_fetched_where_more_are_wanted_than_there_are(stub, tmp_path):
    bars = recent(5000)
    stub.reveal("AAPL", bars)
    async with made(stub, tmp_path, "AAPL", days=1) as (collector, store):
        await collector.fill()
        assert 1400 <= await store.count("AAPL", MINUTE, as_of=FAR) <= 1450
    async with made(stub, tmp_path, "AAPL", days=4) as (collector, store):
        await collector.fill()
        assert rows(await store.newest("AAPL", MINUTE, 10_000, as_of=FAR)) == rows(bars)
    asked = [heard.query["symbols"] for heard in stub.market.heard]
    assert asked == ["AAPL"] * 3


async def test_impossible_bars_are_left_out_and_told(stub, tmp_path, caplog):
    bars = recent(5)
    high = bars.high.copy()
    high[2] = 0.5
    async with collecting(stub, tmp_path, "AAPL") as running:
        await until(listened(stub, "AAPL"))
        stub.reveal("AAPL", Bars(bars.time, bars.open, high, bars.low, bars.close, bars.volume), asked=False)
        await running.until_stored("AAPL", bars[:2], bars[3:])
    assert "impossible_bars" in [record.msg for record in caplog.records]


async def test_a_series_of_another_length_is_refused_before_anything_is_asked(stub, tmp_path):
    await EmbeddedPlace(tmp_path).fill("AAPL", DAY, walk(every(86_400, 0, 3)))
    async with made(stub, tmp_path) as (collector, _):
        assert "stored in bars of 1d" in (await collector.add(["AAPL"]))[0]
        assert collector.watchlist.symbols == ()


async def test_what_a_store_does_not_take_is_kept_until_it_does(stub, tmp_path, caplog):
    bars = recent(5)
    await EmbeddedPlace(tmp_path).fill("AAPL", MINUTE, bars[:1])
    async with collecting(stub, tmp_path, "AAPL") as running:
        await until(listened(stub, "AAPL"))
        with closing(sqlite3.connect(tmp_path / "market.db")) as other:
            other.execute("BEGIN IMMEDIATE")  # nobody else can write
            stub.reveal("AAPL", bars, asked=False)
            await until(lambda: "not_stored" in [record.msg for record in caplog.records])
            assert len(running.collector.memory) == 5
        await running.until_stored("AAPL", bars)


def test_memory_is_bounded_and_says_what_had_to_go():
    memory = Memory()
    row = (1.0, 1.0, 1.0, 1.0, 1.0)
    assert [memory.put("AAPL", 60 * at, row) for at in range(LIMIT)] == [None] * LIMIT
    assert memory.put("AAPL", 60 * LIMIT, row) == 0
    taken = memory.take()["AAPL"]
    assert (len(taken), len(memory)) == (LIMIT, 0)
    memory.put("AAPL", 60 * (LIMIT + 1), row)
    memory.put("AAPL", 120, (2.0, 2.0, 2.0, 2.0, 2.0))  # a later version of one that could not be stored
    assert memory.give_back("AAPL", taken) == 60
    again = memory.take()["AAPL"]
    assert (len(again), again.close[0], int(again.time[-1])) == (LIMIT, 2.0, 60 * (LIMIT + 1))


def test_what_is_owed_is_of_one_store_and_outlives_a_file_that_is_none(tmp_path):
    path = tmp_path / "home" / "alpaca.json"
    owed = Owed(path, "influxdb://someone:secret@here/bars")
    owed.owe("AAPL", 300)
    owed.owe("AAPL", 600)
    owed.owe("MSFT", 60)
    owed.settle("MSFT")
    owed.save()
    assert "secret" not in path.read_text()
    assert Owed(path, "influxdb://someone:secret@here/bars").since("AAPL") == 300
    assert "AAPL" not in Owed(path, "elsewhere")
    path.write_bytes(b"\0")
    assert "AAPL" not in Owed(path, "influxdb://someone:secret@here/bars")


def test_pauses_grow_to_a_limit_and_are_never_quite_alike():
    for failures, whole in ((1, 1), (2, 2), (5, 16), (8, 120), (10_000, 120)):
        pauses = {pause(failures, 1, 120) for _ in range(50)}
        assert whole / 2 <= min(pauses) <= max(pauses) <= whole
        assert len(pauses) > 40
