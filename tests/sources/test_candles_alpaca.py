"""The adapter `alpaca`: what the port's suite cannot know of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quantdeck.core.clock import Clock
from quantdeck.core.errors import Busy, Denied, NotConfigured, QueryFailed, Unreachable
from quantdeck.domain.candles import resampled
from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES
from quantdeck.settings import Alpaca, MisconfiguredError, Settings
from quantdeck.sources.candles.alpaca import AlpacaCandles, connect
from tests.support.alpaca_market import message
from tests.support.alpaca_stub import KEY, SECRET, AlpacaStub, alpaca
from tests.support.bars import FAR, at, every, now, rows, walk

NOON_S = at("2026-01-15T12:00")
HOUR = TIMEFRAMES["1h"]


@pytest.fixture
def stub() -> Iterator[AlpacaStub]:
    with alpaca() as made:
        yield made


@asynccontextmanager
async def asked(
    stub: AlpacaStub, clock: str = "wall", *, answer_s: float = 0, **said: Any
) -> AsyncIterator[AlpacaCandles]:
    given = {"api_key": KEY, "secret_key": SECRET, "data_url": stub.data_url, "timeout_s": 5} | said
    candles = AlpacaCandles(Alpaca.model_validate(given), Clock.parse(clock), lambda: ("AAPL", "BTC/USD", "SILENT"),
                            answer_s=answer_s)  # fmt: skip
    try:
        yield candles
    finally:
        await candles.close()


async def test_stocks_and_coins_are_asked_where_each_is(stub):
    stub.reveal("BRK.B", walk(every(60, NOON_S, 3)))
    stub.reveal("BTC/USD", walk(every(60, NOON_S, 3)))
    async with asked(stub, feed="sip") as candles:
        assert len(await candles.newest("BRK.B", MINUTE, 5, as_of=FAR)) == 3
        assert len(await candles.newest("BTC/USD", MINUTE, 5, as_of=FAR)) == 3
    stocks = [heard.query for heard in stub.market.heard if heard.path == "/v2/stocks/bars"]
    coins = [heard.query for heard in stub.market.heard if heard.path == "/v1beta3/crypto/us/bars"]
    assert {(query["symbols"], query["feed"], query["adjustment"]) for query in stocks} == {("BRK.B", "sip", "raw")}
    assert all(query["symbols"] == "BTC/USD" and "feed" not in query for query in coins)


@pytest.mark.parametrize("symbol", ["EUR/USD", "XAU/USD", "aapl", "TOOLONG", "BTC-USD", "A.BC"])
async def test_what_alpaca_cannot_have_is_not_asked(stub, symbol):
    async with asked(stub) as candles:
        assert await candles.series(symbol, as_of=FAR) is None
    assert stub.market.heard == []


async def test_the_symbols_are_those_of_the_watchlist_that_have_bars(stub):
    for symbol in ("AAPL", "BTC/USD", "MSFT"):
        stub.reveal(symbol, walk(every(60, NOON_S, 3)))
    async with asked(stub) as candles:
        assert await candles.symbols(as_of=FAR) == ["AAPL", "BTC/USD"]


async def test_pages_follow_one_another_until_there_is_no_token(stub):
    bars = walk(every(60, NOON_S, 2500))
    stub.reveal("AAPL", bars)
    stub.market.most_per_page = 700
    async with asked(stub) as candles:
        found = await candles.between("AAPL", MINUTE, now(NOON_S), FAR, as_of=FAR)
        assert rows(found) == rows(bars)
        assert rows(await candles.newest("AAPL", MINUTE, 2000, as_of=FAR)) == rows(bars)[-2000:]
        assert rows(await candles.newest("AAPL", DAY, 9, as_of=FAR)) == rows(resampled(bars, DAY))


async def test_a_page_that_breaks_off_is_asked_again(stub):
    bars = walk(every(60, NOON_S, 50))
    stub.reveal("AAPL", bars)
    async with asked(stub) as candles:
        for trouble in (None, message(500, "internal server error"), (200, b"<html>")):
            stub.market.failing = [trouble]
            told = candles.between("AAPL", MINUTE, now(NOON_S), FAR, as_of=FAR)
            if trouble == (200, b"<html>"):
                with pytest.raises(Unreachable, match="cannot be read"):
                    await told
            else:
                assert rows(await told) == rows(bars)


async def test_days_are_utcs_and_made_of_alpacas_hours(stub):
    bars = walk(every(60, at("2026-01-14T22:00"), 300))
    stub.reveal("AAPL", bars)
    async with asked(stub) as candles:
        assert rows(await candles.newest("AAPL", DAY, 5, as_of=FAR)) == rows(resampled(bars, DAY))
    assert {heard.query["timeframe"] for heard in stub.market.heard} == {"1Min", "1Hour"}


async def test_who_asks_again_and_again_is_answered_without_asking_again(stub):
    bars = walk(every(60, NOON_S, 30))
    stub.reveal("BTC/USD", bars[:29])
    async with asked(stub, answer_s=60) as candles:
        for _ in range(5):
            as_of = now(NOON_S + 60 * 29 + 0.5)
            assert rows(await candles.newest("BTC/USD", MINUTE, 3, as_of=as_of)) == rows(bars)[26:29]
            assert rows(await candles.newest("NOPE", MINUTE, 3, as_of=as_of)) == []
        assert len(stub.market.heard) == 3
        stub.reveal("BTC/USD", bars[29:])
        later = now(NOON_S + 60 * 30 + 0.5)
        assert rows(await candles.newest("BTC/USD", MINUTE, 3, as_of=later)) == rows(bars)[27:]


async def test_a_count_goes_on_from_where_it_ended_and_no_further_than_it_is_told(stub):
    bars = walk(every(60, NOON_S, 3000))
    stub.reveal("BTC/USD", bars[:2000])
    async with asked(stub, most_counted=2500) as candles:
        assert await candles.count("BTC/USD", MINUTE, as_of=now(NOON_S + 60 * 2000)) == 2000
        stub.reveal("BTC/USD", bars[2000:])
        before = len(stub.market.heard)
        assert await candles.count("BTC/USD", MINUTE, as_of=now(NOON_S + 60 * 2200)) == 2200
        (again,) = stub.market.heard[before:]
        assert at(again.query["start"].rstrip("Z")) > NOON_S + 60 * 1900
        assert await candles.count("BTC/USD", MINUTE, as_of=now(NOON_S + 60 * 3000)) == 2500
        assert await candles.count("BTC/USD", MINUTE, as_of=now(NOON_S + 60 * 100)) == 100


async def test_a_bar_that_came_late_is_counted(stub):
    bars = walk(every(60, NOON_S, 100))
    stub.reveal("BTC/USD", bars[:98])
    as_of = now(NOON_S + 60 * 100)
    async with asked(stub) as candles:
        assert await candles.count("BTC/USD", MINUTE, as_of=as_of) == 98
        stub.reveal("BTC/USD", bars[98:])
        assert await candles.count("BTC/USD", MINUTE, as_of=as_of) == 100


async def test_where_the_plan_has_no_recent_bars_of_all_exchanges_it_is_behind_and_says_so(stub, caplog):
    minute_s = MINUTE.floor(time.time())
    stub.reveal("AAPL", walk(every(60, minute_s - 60 * 60, 60)))
    stub.reveal("BTC/USD", walk(every(60, minute_s - 60 * 60, 60)))
    wall = Clock().now
    async with asked(stub, feed="sip") as candles:
        stock = await candles.newest("AAPL", MINUTE, 5, as_of=wall())
        coin = await candles.newest("BTC/USD", MINUTE, 1, as_of=wall())
        assert int(stock.time[-1]) <= minute_s - 15 * 60 < int(stock.time[-1]) + 180
        assert int(coin.time[-1]) >= minute_s - 60
        series = await candles.series("AAPL", as_of=wall())
        assert series is not None
        assert series.last_s == int(stock.time[-1])
    assert [record.msg for record in caplog.records if record.msg == "alpaca_is_late"] == ["alpaca_is_late"]


async def test_a_paid_plan_is_not_behind(stub):
    stub.market.plan = "paid"
    minute_s = MINUTE.floor(time.time())
    stub.reveal("AAPL", walk(every(60, minute_s - 60 * 5, 5)))
    async with asked(stub, feed="sip") as candles:
        assert int((await candles.newest("AAPL", MINUTE, 1, as_of=Clock().now())).time[-1]) == minute_s - 60


# Refusals.


async def test_asking_too_often_is_sat_out_where_it_is_short_and_told_where_it_is_long(stub):
    stub.reveal("AAPL", walk(every(60, NOON_S, 3)))
    async with asked(stub) as candles:
        stub.market.failing = [(429, b'{"message": "too many requests."}', {"retry-after": "0"})]
        assert len(await candles.newest("AAPL", MINUTE, 5, as_of=FAR)) == 3
        stub.market.failing = [(429, b'{"message": "too many requests."}', {"retry-after": "47"})]
        with pytest.raises(Busy, match="wait a little") as refused:
            await candles.newest("AAPL", MINUTE, 5, as_of=FAR)
        assert refused.value.details["retry_after_s"] == 47
        stub.market.left = 0
        with pytest.raises(Busy):  # its headers say that the minute ends in a second; then it refuses again
            await candles.newest("AAPL", MINUTE, 5, as_of=FAR)


REFUSALS = [
    (message(403, "forbidden."), Denied, "refused the key"),
    (message(401, "unauthorized."), Denied, "refused the key"),
    (message(400, "invalid start: parameter"), QueryFailed, "refused the question as invalid: invalid start"),
    (message(404, "endpoint not found."), QueryFailed, "QUANTDECK_ALPACA__DATA_URL"),
    ((200, b"[]"), Unreachable, "cannot be read"),
    ((200, b'{"bars": {"AAPL": [{"t": 5}]}}'), Unreachable, "cannot be read"),
]


@pytest.mark.parametrize("answer, kind, said", REFUSALS, ids=lambda value: str(value)[:30])
async def test_each_refusal_is_told_in_our_words(stub, answer, kind, said):
    stub.market.failing = [answer]
    async with asked(stub) as candles:
        with pytest.raises(kind, match=said):
            await candles.newest("AAPL", MINUTE, 5, as_of=FAR)


async def test_a_failure_that_lasts_is_a_connection_that_may_be_tried_again(stub):
    stub.market.failing = [message(503, "x")] * 2
    async with asked(stub) as candles:
        with pytest.raises(Unreachable, match=r"connection to Alpaca failed there \(status 503\)"):
            await candles.newest("AAPL", MINUTE, 5, as_of=FAR)


async def test_one_who_does_not_answer_is_given_up_in_time():
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    group = Alpaca.model_validate({"api_key": KEY, "secret_key": SECRET, "data_url": url, "timeout_s": 0.05})
    candles = AlpacaCandles(group, Clock(), tuple)
    with pytest.raises(Unreachable, match="timed out"):
        await candles.newest("AAPL", MINUTE, 5, as_of=FAR)
    await candles.close()
    server.close()
    await server.wait_closed()
    with pytest.raises(Unreachable, match="down or out of reach"):
        await AlpacaCandles(group, Clock(), tuple).newest("AAPL", MINUTE, 5, as_of=FAR)


async def test_the_keys_are_in_no_address_error_or_log(stub, caplog):
    caplog.set_level(logging.DEBUG)
    echo = f'{{"message": "no {KEY} with {SECRET} here"}}'.encode()
    async with asked(stub) as candles:
        for status in (400, 403, 404, 500, 500):
            stub.market.failing.append((status, echo, {"x-echo": SECRET}))
        for _ in range(4):
            with pytest.raises(Exception, match="Alpaca") as failed:
                await candles.newest("AAPL", MINUTE, 5, as_of=FAR)
            told = f"{failed.value!r} {failed.value.__cause__!r} {failed.value.__context__!r}"
            assert SECRET not in told
            assert KEY not in told
    assert SECRET not in caplog.text
    assert KEY not in caplog.text
    assert all(SECRET not in str(heard.query) and KEY not in str(heard.query) for heard in stub.market.heard)


@pytest.mark.parametrize("bad", ["k\u00e9y", "two words", "line\nbreak"])
async def test_a_key_that_no_header_can_hold_is_refused_unsent_and_unsaid(stub, bad):
    async with asked(stub, secret_key=bad) as candles:
        with pytest.raises(Denied) as refused:
            await candles.newest("AAPL", MINUTE, 5, as_of=FAR)
    assert bad not in repr(refused.value)
    assert stub.market.heard == []


async def test_without_keys_coins_can_be_asked_and_stocks_say_what_to_set(stub):
    stub.reveal("BTC/USD", walk(every(60, NOON_S, 3)))
    async with asked(stub, secret_key="") as candles:
        assert len(await candles.newest("BTC/USD", MINUTE, 5, as_of=FAR)) == 3
        for question in (candles.newest("AAPL", MINUTE, 5, as_of=FAR), candles.ping(), candles.symbols(as_of=FAR)):
            with pytest.raises(NotConfigured, match="set ALPACA_API_KEY and ALPACA_SECRET_KEY"):
                await question


async def test_it_takes_no_bars_and_forgets_none(stub):
    async with asked(stub) as candles:
        for deed in (candles.write("AAPL", MINUTE, walk([NOON_S])), candles.forget("AAPL")):
            with pytest.raises(QueryFailed, match="collect alpaca"):
                await deed
    assert stub.market.heard == []


def test_its_url_says_nothing_more():
    with pytest.raises(MisconfiguredError, match="settings of their own"):
        connect("alpaca://data.alpaca.markets", Settings(), None)  # type: ignore[arg-type]
