"""What every adapter of the port `positions` does, and how NATS's keeps up with fills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
import pytest

from quantdeck.connections.nats import Nats
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotInPast, Unreachable
from quantdeck.sources.fills import NewFill
from quantdeck.sources.positions import Positions
from quantdeck.sources.positions.embedded import DeskPositions
from quantdeck.sources.positions.nats import SUBJECT, NatsPositions, fill_of
from tests.sources.conftest import opened
from tests.support.desk import LATER, NOON, add_position
from tests.support.leaks import Reads, assert_sealed
from tests.support.nats import named, own_server

READS: Reads = {"held": lambda positions, as_of: positions.held("default", as_of=as_of)}
NO_READS = {"revision", "follow"}


def running() -> Now:
    return Now.of(datetime.now(UTC), fixed=False)


class Desk:
    """The embedded adapter, and somebody who trades."""

    def __init__(self, database: Any) -> None:
        self.positions: Positions = DeskPositions(database)
        self._database = database

    async def trade(self, symbol: str, quantity: float, price: float, at: datetime = NOON) -> None:
        side = "LONG" if quantity > 0 else "SHORT"
        said = {"side": side, "size": abs(quantity), "entry_price": price, "current_price": price}
        await add_position(self._database, uuid4().hex, symbol, **said, opened_at=at, created_at=at, updated_at=at)


class Stream:
    """NATS's adapter, which follows, and somebody who publishes."""

    def __init__(self, nats: Nats) -> None:
        self.positions = NatsPositions(nats, "default")
        self.nats = nats
        self.heard: list[NewFill] = []
        self._changed = asyncio.Event()

    async def told(self, fill: NewFill) -> None:
        self.heard.append(fill)

    async def trade(self, symbol: str, quantity: float, price: float, at: datetime = NOON) -> None:
        before = await self.positions.revision()
        side = "buy" if quantity > 0 else "sell"
        fill = {"symbol": symbol, "side": side, "quantity": abs(quantity), "price": price, "timestamp": at.isoformat()}
        await self.publish(orjson.dumps(fill))
        async with asyncio.timeout(20):
            while await self.positions.revision() == before:  # noqa: ASYNC110 - it is another process that changes it
                await asyncio.sleep(0.005)

    async def publish(self, data: bytes) -> None:
        await self.nats.publish(SUBJECT, data, {})


@asynccontextmanager
async def streaming(url: str, **said: Any) -> AsyncIterator[Stream]:
    stream = Stream(Nats(url, named(connect_s=10, read_s=10, **said)))
    async with stream.nats.consumer(SUBJECT, "made-before-anybody-publishes"):
        following = asyncio.create_task(stream.positions.follow(stream.told))
        try:
            yield stream
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await stream.positions.close()


services = pytest.mark.services


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=services), pytest.param("nats", marks=services)])
async def market(request, tmp_path):
    if request.param != "nats":
        async with opened(request.param, tmp_path, "desk") as database:
            yield Desk(database)
        return
    with own_server() as server:  # its stream's subject is one for all, so it is not shared with other tests
        async with streaming(server.url) as stream:
            yield stream


async def held(market, account: str = "default") -> dict[str, tuple[float, float | None]]:
    return {one.symbol: (one.quantity, one.price) for one in await market.positions.held(account, as_of=running())}


async def test_nothing_is_held_by_who_has_not_traded(market):
    assert await held(market, "nobody") == {}


async def test_trades_add_up_and_shorts_are_below_zero(market):
    await market.trade("EUR/USD", 100.1, 1.1)
    await market.trade("BTC/USD", -2, 90_000.0)
    await market.trade("EUR/USD", 200.2, 1.2)
    found = await held(market)
    assert {symbol: quantity for symbol, (quantity, _) in found.items()} == {"BTC/USD": -2.0, "EUR/USD": 300.3}
    assert found["BTC/USD"][1] == 90_000.0


async def test_every_trade_is_another_revision(market):
    seen = [await market.positions.revision()]
    for _ in range(3):
        await market.trade("EUR/USD", 1, 1.1)
        seen.append(await market.positions.revision())
    assert len({orjson.dumps(mark, default=str) for mark in seen}) == 4
    assert await market.positions.revision() == seen[-1]


async def test_at_a_fixed_instant_nothing_is_known_that_came_later(market):
    await market.trade("EUR/USD", 1, 1.1)
    as_of = Now.of(NOON, fixed=True)
    before = await market.positions.held("default", as_of=as_of)
    assert [one.quantity for one in before] == [1.0]

    async def later() -> None:
        await market.trade("EUR/USD", 5, 1.2, LATER)

    if isinstance(market, Stream):  # it keeps one state: what was is refused once it has changed
        await later()
        with pytest.raises(NotInPast):
            await market.positions.held("default", as_of=as_of)
        return
    await assert_sealed(market.positions, READS, later, at=NOON, later=LATER, no_reads=NO_READS)


async def failed(ask, at_most: int = 10_000) -> bool:
    """Whether it is out of reach by the so many-th question: that a connection is gone is noticed when it is used."""
    for _ in range(at_most):
        try:
            await ask()
        except Unreachable:
            return True
    return False


# what only NATS does


@services
async def test_what_is_no_fill_is_refused_and_holds_nobody_up(caplog):
    with own_server() as server:
        async with streaming(server.url) as stream:
            for wrong in (b"", b"[]", b"{}", b'{"side":"buy","symbol":"EUR/USD","quantity":-1,"price":1}', b"\xff"):
                await stream.publish(wrong)
            await stream.trade("EUR/USD", 1, 1.1)
            assert await held(stream) == {"EUR/USD": (1.0, 1.1)}
            assert len([record for record in caplog.records if record.message == "fill_refused"]) == 5
            assert len(stream.heard) == 1


@services
async def test_a_fill_that_is_published_twice_is_counted_once():
    with own_server() as server:
        async with streaming(server.url) as stream:
            fill = orjson.dumps({"fill_id": "x", "symbol": "EURUSD", "side": "buy", "qty": 3, "price": 1.1})
            await stream.publish(fill)
            await stream.publish(fill)
            await stream.trade("BTC/USD", 1, 1.0)
            async with asyncio.timeout(20):
                while "BTC/USD" not in await held(stream):  # noqa: ASYNC110 - it is another process that changes it
                    await asyncio.sleep(0.005)
            assert (await held(stream))["EUR/USD"] == (3.0, 1.1)


@services
async def test_a_position_that_is_closed_is_gone():
    with own_server() as server:
        async with streaming(server.url) as stream:
            await stream.trade("EUR/USD", 0.3, 1.1)
            await stream.trade("EUR/USD", -0.1, 1.1)
            await stream.trade("EUR/USD", -0.2, 1.1)
            assert await held(stream) == {}


@services
async def test_two_that_follow_count_each_fill_once_and_a_server_that_comes_back_goes_on():
    with own_server() as server:
        async with streaming(server.url) as one:
            other = NatsPositions(Nats(server.url, one.nats.settings), "default")
            following = asyncio.create_task(other.follow(one.told))
            for _ in range(10):
                await one.trade("EUR/USD", 1, 1.1)
            with server.stopped():
                assert await failed(one.positions.revision)
            async with asyncio.timeout(20):
                while await failed(one.positions.revision, at_most=1):  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.02)
            assert await held(one) == {"EUR/USD": (10.0, 1.1)}
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await other.close()


@pytest.mark.parametrize(
    "told",
    [
        {"side": "hold"}, {"quantity": 0}, {"quantity": True}, {"price": None}, {"price": "1"}, {"quantity": 1e301},
        {"symbol": "no such thing"}, {"timestamp": "2026-01-15T12:00:00"}, {"timestamp": "then"}, {"mid_price": -1},
    ],
    ids=str,
)  # fmt: skip
def test_a_fill_is_read_strictly(told):
    sound = {"symbol": "EURUSD", "side": "buy", "quantity": 1, "price": 1.1, "timestamp": "2026-01-15T12:00:00Z"}
    read = fill_of(orjson.dumps(sound), 7, "default")
    assert (read.fill_id, read.account_id, read.symbol, read.side) == ("executions.fill:7", "default", "EUR/USD", "BUY")
    with pytest.raises(ValueError, match=r"is |has |Invalid"):
        fill_of(orjson.dumps({**sound, **told}), 7, "default")
