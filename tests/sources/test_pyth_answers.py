"""Answers of Pyth that are wrapped, wild, or wanted by nobody any more."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import orjson
import pytest

from quantdeck.core.clock import Now
from quantdeck.core.errors import SourceError, Unreachable
from quantdeck.settings import Pyth as Group
from quantdeck.sources.pyth import Refused
from quantdeck.sources.pyth.http import HttpPyth
from tests.support.pyth_stub import KEY, PythStub

NOW = Now.of(datetime(2026, 6, 1, 12, tzinfo=UTC), fixed=False)
CHANNEL = "fixed_rate@200ms"


@pytest.fixture
async def stub():
    async with PythStub().serving() as serving:
        yield serving


@pytest.fixture
async def pyth(stub):
    adapter = HttpPyth(Group(router_url=stub.url, history_url=stub.url, retry_s=0))
    yield adapter
    await adapter.close()


@pytest.mark.parametrize("member", ["error", "message", "detail"])
async def test_a_reason_that_a_proxy_wrapped_is_unwrapped(stub, pyth, member):
    stub.failing = [(400, orjson.dumps({"status": 400, member: "too many feeds"}))]
    with pytest.raises(Refused) as refused:
        await pyth.latest([1], ["price"], CHANNEL, token=KEY, as_of=NOW)
    assert refused.value.reason == "too many feeds"


@pytest.mark.parametrize("wild", [b"1e300", b"9" * 40, b"true", b'"1"', b"{}"])
@pytest.mark.parametrize("column", list("tohlcv"))
async def test_a_candle_with_something_wild_is_left_out(stub, pyth, column, wild):
    told = {"s": "ok", "t": [60, 120], **{name: [1.5, 2.5] for name in "ohlc"}, "v": [0, 0], column: [1.5, "WILD"]}
    stub.failing = [(200, orjson.dumps(told).replace(b'"WILD"', wild))]
    found = await pyth.candles("Crypto.BTC/USD", "1", 0, 600, CHANNEL, token=KEY, as_of=NOW)
    assert (found.t if column != "t" else [60], found.c) == ([60], [1.5])


async def test_of_what_is_on_its_way_when_it_is_closed_nothing_is_left(stub):
    stub.stalled = asyncio.Event()
    adapter = HttpPyth(Group(router_url=stub.url, history_url=stub.url))
    waiting = asyncio.ensure_future(adapter.catalog(token=None))
    await stub.arrived.wait()
    async with asyncio.timeout(5):  # long before the request's own time is over
        await adapter.close()
    with pytest.raises((asyncio.CancelledError, SourceError)):
        await waiting


async def test_a_service_that_speaks_no_http_has_what_it_said_repeated_nowhere(caplog):
    """Not even in the exception behind the failure: what is no HTTP may be what was sent."""
    caplog.set_level(logging.DEBUG)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + KEY.encode() + b"\r\n\r\n" + head)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        adapter = HttpPyth(Group(router_url=url, history_url=url, retry_s=0))
        with pytest.raises(Unreachable) as failed:
            await adapter.latest([1], ["price"], CHANNEL, token=KEY, as_of=NOW)
        await adapter.close()
    error: BaseException | None = failed.value
    told = []
    while error is not None:
        told.append(f"{error!r} {vars(error)}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert KEY not in f"{told}{caplog.text}"
