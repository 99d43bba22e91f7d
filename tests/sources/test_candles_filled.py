"""Symbols that a store lacks, asked of Alpaca: which is asked when, and what the answer says of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from quantdeck.app import open_app
from quantdeck.commands import chosen_servers
from quantdeck.core.errors import NotConfigured, QueryFailed
from quantdeck.domain.timeframes import DAY, MINUTE
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.candles import Candles
from tests.support.alpaca_stub import AlpacaStub, alpaca
from tests.support.bars import FAR, at, every, now, rows, walk
from tests.support.candle_stores import EmbeddedPlace
from tests.support.leaks import assert_sealed
from tests.support.program import quantdeck

NOON_S = at("2026-01-15T12:00")


@pytest.fixture
def stub() -> Iterator[AlpacaStub]:
    with alpaca() as made:
        yield made


@pytest.fixture
async def candles(stub, tmp_path) -> Any:
    settings = Settings.read({**stub.environment(), "QUANTDECK_HOME": str(tmp_path)})
    async with open_app(settings, chosen_servers(["market-data-mcp"])) as app:
        yield app.runtime.source(Candles)


async def test_what_the_store_has_is_read_there_and_what_it_lacks_at_alpaca(stub, tmp_path, candles):
    ours, theirs = walk(every(60, NOON_S, 30)), walk(every(60, NOON_S, 30), seed=3)
    await EmbeddedPlace(tmp_path).fill("AAPL", MINUTE, ours)
    for symbol in ("AAPL", "MSFT", "BTC/USD"):
        stub.reveal(symbol, theirs)
    assert rows(await candles.newest("AAPL", MINUTE, 100, as_of=FAR)) == rows(ours)
    assert stub.market.heard == []
    for symbol in ("MSFT", "BTC/USD"):
        assert rows(await candles.newest(symbol, MINUTE, 100, as_of=FAR)) == rows(theirs)
        assert rows(await candles.between(symbol, MINUTE, now(NOON_S), FAR, as_of=FAR)) == rows(theirs)
        assert await candles.count(symbol, MINUTE, as_of=FAR) == 30
        assert (await candles.page(symbol, DAY, 5, as_of=FAR))[1] == 1
        assert (await candles.series(symbol, as_of=FAR)).last_s == NOON_S + 29 * 60
    assert await candles.symbols(as_of=FAR) == ["AAPL"]
    assert await candles.series("EUR/USD", as_of=FAR) is None


async def test_what_alpaca_said_is_not_stored(stub, tmp_path, candles):
    stub.reveal("MSFT", walk(every(60, NOON_S, 30)))
    await candles.newest("MSFT", MINUTE, 100, as_of=FAR)
    assert not (tmp_path / "market.db").exists()
    await candles.write("AAPL", MINUTE, walk(every(60, NOON_S, 3)))
    assert await candles.symbols(as_of=FAR) == ["AAPL"]
    await candles.forget("AAPL")
    assert await candles.symbols(as_of=FAR) == []


async def test_a_series_that_had_not_begun_in_the_store_is_lacking_at_that_time(stub, tmp_path, candles):
    bars = walk(every(60, NOON_S, 3000))
    stub.reveal("AAPL", bars)
    await EmbeddedPlace(tmp_path).fill("AAPL", MINUTE, bars[2000:])
    early = now(NOON_S + 60 * 1000)
    assert rows(await candles.newest("AAPL", MINUTE, 5, as_of=early)) == rows(bars)[995:1000]


async def test_no_read_has_a_bar_that_closes_later(stub, tmp_path, candles):
    bars = walk(every(60, NOON_S - 6000, 200))
    cut = int(bars.time.searchsorted(NOON_S))
    await EmbeddedPlace(tmp_path).fill("AAPL", MINUTE, bars[:cut])
    stub.reveal("MSFT", bars[:cut])

    async def write_later() -> None:
        await EmbeddedPlace(tmp_path).fill("TSLA", MINUTE, bars[cut:])
        stub.reveal("MSFT", bars[cut:])

    async def told(answer: Any) -> Any:
        return rows(await answer)

    async def paged(answer: Any) -> Any:
        bars, total = await answer
        return rows(bars), total

    reads: Any = {
        "symbols": lambda source, as_of: source.symbols(as_of=as_of),
        "series": lambda source, as_of: source.series("MSFT", as_of=as_of),
        "between": lambda source, as_of: told(source.between("MSFT", MINUTE, now(0), FAR, as_of=as_of)),
        "newest": lambda source, as_of: told(source.newest("MSFT", MINUTE, 3, as_of=as_of)),
        "count": lambda source, as_of: source.count("MSFT", MINUTE, as_of=as_of),
        "page": lambda source, as_of: paged(source.page("MSFT", MINUTE, 3, skip=1, as_of=as_of)),
    }
    no_reads = {"write", "forget", "snapshot", "storage", "store_of"}
    at_noon, later = now(NOON_S + 59), now(NOON_S + 86_400)
    await assert_sealed(candles, reads, write_later, at=at_noon, later=later, no_reads=no_reads)


async def test_where_nothing_is_stored_and_alpaca_cannot_have_it_the_home_says_what_to_do(candles):
    with pytest.raises(NotConfigured, match="import candles"):
        await candles.newest("EUR/USD", MINUTE, 5, as_of=FAR)
    async with candles.snapshot():
        pass
    await candles.ping()


def told(home: Path, stub: AlpacaStub, symbol: str, **environment: str) -> dict[str, Any]:
    said = quantdeck(
        "call", "get_candles", orjson.dumps({"symbol": symbol, "timeframe": "1h", "limit": 2}).decode(), home=home,
        environment={**stub.environment(), **environment},
    )  # fmt: skip
    return dict(orjson.loads(said.stdout))


async def test_an_answer_names_the_source_that_it_is_from(stub, tmp_path):
    hour_s = int(time.time()) // 3600 * 3600
    bars = walk(every(60, hour_s - 7200, 120))
    await EmbeddedPlace(tmp_path).fill("AAPL", MINUTE, bars)
    stub.reveal("MSFT", bars)
    assert told(tmp_path, stub, "AAPL")["_metadata"]["source"] == "sqlite"
    filled = told(tmp_path, stub, "MSFT")
    assert (filled["_metadata"]["source"], len(filled["data"]["items"])) == ("alpaca", 2)
    without = told(tmp_path, stub, "MSFT", QUANTDECK_ALPACA__FILL="false")
    assert without["error"]["code"] == "INVALID_SYMBOL"
    stub.market.failing = [(503, b"{}")] * 5
    down = told(tmp_path, stub, "TSLA")
    assert (down["error"]["code"], "connection" in down["error"]["message"]) == ("DATABASE_ERROR", True)


async def test_a_key_and_a_demo_world_are_refused_together(stub, tmp_path):
    (tmp_path / "demo.json").write_text('{"seed": 7, "days": 1}')
    settings = Settings.read({**stub.environment(), "QUANTDECK_HOME": str(tmp_path)})
    with pytest.raises(MisconfiguredError, match="QUANTDECK_ALPACA__API_KEY names something real"):
        async with open_app(settings, chosen_servers(["market-data-mcp"])):
            pass


async def test_the_store_may_be_alpaca_itself(stub, tmp_path):
    stub.reveal("MSFT", walk(every(60, NOON_S, 30)))
    environment = {**stub.environment(), "QUANTDECK_HOME": str(tmp_path), "QUANTDECK_CANDLES": "alpaca:"}
    async with open_app(Settings.read(environment), chosen_servers(["market-data-mcp"])) as app:
        store = app.runtime.source(Candles)
        assert store.source == "alpaca"
        with pytest.raises(QueryFailed, match="takes no bars"):
            await store.write("AAPL", MINUTE, walk([NOON_S]))
