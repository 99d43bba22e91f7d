"""InfluxDB's connection: who it says it is, how many connections it takes, and what it makes of failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from quantdeck.connections.influxdb import InfluxDB, place
from quantdeck.core.errors import Busy, Denied, QueryFailed, SourceError, Unreachable
from quantdeck.settings import InfluxDB as Settings
from quantdeck.settings import MisconfiguredError
from tests.support import influxdb
from tests.support.http_stub import Answer, HttpStub, Request

NOTHING = orjson.dumps({"results": [{"statement_id": 0}]})


@asynccontextmanager
async def connected(url: str, **said: Any) -> AsyncIterator[InfluxDB]:
    settings = Settings(url=url, **{"bucket": "market", **said})
    database = InfluxDB(place("influxdb:", settings), settings)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def answering(status: int, body: bytes, **said: Any) -> AsyncIterator[tuple[HttpStub, InfluxDB]]:
    """A stub that always says the same, and a connection to it."""

    async def answer(_: Request) -> Answer:
        return status, body

    async with HttpStub(answer).serving() as stub, connected(stub.url, **said) as database:
        yield stub, database


# who it says it is


@pytest.mark.parametrize(
    "said, header",
    [
        ({"token": "s3cret"}, "Token s3cret"),
        ({"token": "s3cret", "auth": "bearer"}, "Bearer s3cret"),
        ({"user": "me", "password": "pass:word"}, "Basic bWU6cGFzczp3b3Jk"),
        ({}, None),
    ],
)
async def test_credentials_go_as_each_version_wants_them(said, header):
    async with answering(200, NOTHING, **said) as (stub, database):
        await database.query("SHOW DATABASES")
        await database.write([b"candles open=1 0"])
    assert [request.headers.get("authorization") for request in stub.heard] == [header, header]


async def test_a_query_is_a_form_and_its_values_are_bound():
    async with answering(200, NOTHING, org="us") as (stub, database):
        await database.query("SELECT close FROM candles WHERE pair = $pair", pair="BTC/USD' OR 1=1")
    (request,) = stub.heard
    assert (request.method, request.path, request.query) == ("POST", "/query", {})
    assert request.form["db"] == "market"
    assert request.form["org"] == "us"
    assert orjson.loads(request.form["params"]) == {"pair": "BTC/USD' OR 1=1"}


async def test_several_statements_are_one_question():
    body = orjson.dumps(
        {
            "results": [
                {"statement_id": 1, "series": [{"tags": {"pair": "A"}, "columns": ["time", "x"], "values": [[1, 2]]}]},
                {"statement_id": 0},
            ]
        }
    )
    async with answering(200, body) as (stub, database):
        assert await database.query("SELECT 1", "SELECT 2") == [[], [{"pair": "A", "time": 1, "x": 2}]]
    assert len(stub.heard) == 1


# what it makes of failures


@pytest.mark.parametrize(
    "status, told, error, words",
    [
        (200, {"results": [{"error": "database not found: market"}]}, QueryFailed, "no database"),
        (200, {"results": [{"statement_id": 0, "error": "max-select-point limit exceeded"}]}, QueryFailed, "refused"),
        (200, {"error": "error parsing query"}, QueryFailed, "refused"),
        (404, {"code": "not found", "message": "unable to find DBRP"}, QueryFailed, "DBRP mapping"),
        (401, {"code": "unauthorized", "message": "unauthorized access"}, Denied, "credentials"),
        (403, {"error": "forbidden"}, Denied, "credentials"),
        (
            500,
            {"error": "Query would exceed file limit of 432 parquet files. Please specify a smaller time range"},
            QueryFailed,
            "too many files",
        ),
        (429, {"message": "rate limit"}, Busy, "busy"),
        (503, {"error": "engine: cache-max-memory-size exceeded"}, Busy, "busy"),
        (
            400,
            {"error": 'partial write: field type conflict: input field "open" is integer'},
            QueryFailed,
            "another type",
        ),
        (400, {"error": "partial write: points beyond retention policy dropped=1"}, QueryFailed, "retention"),
        (504, {"error": "timeout"}, Unreachable, "timeout"),
        (500, {"error": "panic at /srv/influx/engine.go:7"}, Unreachable, "its log"),
    ],
)
async def test_a_failure_is_told_in_our_words_whatever_the_status(status, told, error, words):
    async with answering(status, orjson.dumps(told)) as (_, database):
        with pytest.raises(error, match=words) as caught:
            await database.query("SELECT close FROM candles")
    assert "engine" not in caught.value.message
    assert caught.value.source == "influxdb"


async def test_what_is_no_influxdb_is_told_so():
    async with answering(200, b"<html>Welcome to nginx</html>") as (_, database):
        with pytest.raises(QueryFailed, match="is it InfluxDB"):
            await database.query("SELECT close FROM candles")


async def test_an_answer_that_was_cut_short_is_no_answer():
    series = {"columns": ["time", "x"], "values": [[1, 2]], "partial": True}
    async with answering(200, orjson.dumps({"results": [{"series": [series]}]})) as (_, database):
        with pytest.raises(QueryFailed, match="max-row-limit"):
            await database.query("SELECT x FROM candles")


async def test_a_connection_that_was_kept_too_long_is_made_anew():
    answers = iter([None, (200, NOTHING)])

    async def answer(_: Request) -> Answer | None:
        return next(answers)

    async with HttpStub(answer).serving() as stub, connected(stub.url) as database:
        assert await database.query("SELECT 1") == [[]]
    assert len(stub.heard) == 2


async def test_a_server_that_breaks_off_again_and_again_is_unreachable():
    async def answer(_: Request) -> None:
        return None

    async with HttpStub(answer).serving() as stub, connected(stub.url) as database:
        with pytest.raises(Unreachable, match="connection to InfluxDB broke"):
            await database.query("SELECT 1")
    assert len(stub.heard) == 2


async def test_a_silent_server_is_given_up():
    async def answer(_: Request) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    async with HttpStub(answer).serving() as stub, connected(stub.url, read_s=0.05) as database:
        with pytest.raises(Unreachable, match="timed out"):
            await database.query("SELECT 1")


# how many connections it takes


async def test_never_more_than_five_are_connected_and_the_sixth_waits_no_longer_than_for_a_connection():
    go_on = asyncio.Event()
    five = asyncio.Event()

    async def answer(_: Request) -> Answer:
        if stub.connected == 5:
            five.set()
        await go_on.wait()
        return 200, NOTHING

    stub = HttpStub(answer)
    async with stub.serving(), connected(stub.url, connect_s=0.05) as database:
        asked = [asyncio.create_task(database.query("SELECT 1")) for _ in range(5)]
        await five.wait()
        with pytest.raises(Unreachable, match="all 5 are in use"):
            await database.query("SELECT 1")
        go_on.set()
        await asyncio.gather(*asked)
        await database.query("SELECT 1")  # and there is room again
    assert stub.most_connected == 5


async def test_a_connection_that_nobody_uses_is_closed():
    async with answering(200, NOTHING, idle_s=0.01) as (stub, database):
        await asyncio.gather(*(database.query("SELECT 1") for _ in range(4)))
        while stub.connected > 1:  # the pool looks after them whenever it is used
            await database.query("SELECT 1")


async def test_the_defaults_are_the_specs():
    settings = Settings()
    assert (settings.max_connections, settings.idle_s, settings.connect_s) == (5, 60, 3)


# the address


@pytest.mark.parametrize(
    "url, said, base, bucket, authorization",
    [
        ("influxdb://db:8086/market", {}, "http://db:8086", "market", None),
        ("influxdbs://db/market", {"token": "t"}, "https://db", "market", "Token t"),
        ("influxdb://me:p%40ss@[::1]:8086/a%2Fb", {}, "http://[::1]:8086", "a/b", ("me", "p@ss")),
        ("influxdb://db", {"bucket": "b"}, "http://db", "b", None),
        ("influxdb:", {"url": "https://db/influx/", "bucket": "b"}, "https://db/influx", "b", None),
    ],
)
def test_an_address_is_put_together(url, said, base, bucket, authorization):
    found = place(url, Settings(**said))
    assert (found.base_url, found.bucket, found.authorization) == (base, bucket, authorization)


@pytest.mark.parametrize(
    "url, said, words",
    [
        ("influxdb://db:8086", {}, "BUCKET"),
        ("influxdb:", {"url": "db:8086", "bucket": "b"}, "QUANTDECK_INFLUXDB__URL must name a server"),
        ("influxdb://:secret@/b", {}, "QUANTDECK_CANDLES must name a server"),
        ("influxdb://db:seventy/secret", {}, "cannot be read"),
        ("influxdb://db/b?u=me", {}, "must name a server"),
    ],
)
def test_what_names_no_server_is_refused_at_the_start(url, said, words):
    with pytest.raises(MisconfiguredError, match=words) as caught:
        place(url, Settings(**said))
    assert "secret" not in str(caught.value)


# against the real one


@pytest.mark.services
async def test_a_real_server_answers_and_keeps_the_last_version_of_a_point():
    server = influxdb.available()
    async with connected(server.url, bucket=server.new_bucket()) as database:
        await database.write([b"candles,pair=A open=1 60", b"candles,pair=A open=2 60"])
        assert await database.query("SELECT open FROM candles WHERE pair = $pair", pair="A") == [
            [{"time": 60, "open": 2}]
        ]


@pytest.mark.services
async def test_a_bucket_that_is_not_there_is_told_though_the_status_is_200():
    async with connected(influxdb.available().url, bucket="nowhere") as database:
        with pytest.raises(QueryFailed, match="no database of the configured name"):
            await database.query("SELECT open FROM candles")
        with pytest.raises(QueryFailed, match="no database of the configured name"):
            await database.write([b"candles open=1 60"])


@pytest.mark.services
async def test_a_server_that_stops_and_starts_is_found_again():
    server = influxdb.InfluxServer(influxdb.program())
    server.start()
    try:
        async with connected(server.url, bucket=server.new_bucket()) as database:
            assert await database.query("SELECT open FROM candles") == [[]]
            with server.stopped(), pytest.raises(Unreachable, match="No connection to InfluxDB"):
                await database.query("SELECT open FROM candles")
            assert await database.query("SELECT open FROM candles") == [[]]
    finally:
        server.remove()


@pytest.mark.services
async def test_a_guarded_server_lets_in_who_has_the_password_and_nobody_else():
    server = influxdb.InfluxServer(influxdb.program(), guarded=True)
    server.start()
    try:
        said = {"bucket": server.new_bucket(), "user": server.user}
        async with connected(server.url, **said, password=server.password) as database:
            assert await database.query("SELECT open FROM candles") == [[]]
        for wrong in ({}, {"user": server.user, "password": "no"}):
            async with connected(server.url, bucket=said["bucket"], **wrong) as database:
                with pytest.raises(Denied):
                    await database.query("SELECT open FROM candles")
    finally:
        server.remove()


async def test_nothing_is_connected_before_the_first_question():
    async with connected("http://127.0.0.1:9") as database:
        with pytest.raises(SourceError):
            await database.query("SELECT 1")
