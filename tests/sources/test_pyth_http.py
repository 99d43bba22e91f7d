"""The adapter to Pyth itself: what it asks of the services, and what becomes of whatever they answer."""

from __future__ import annotations

import asyncio
import logging
import tracemalloc
from datetime import UTC, datetime
from email.utils import format_datetime

import orjson
import pytest

from quantdeck.connections.pyth import PythApi
from quantdeck.core.clock import Now
from quantdeck.core.errors import Busy, NotConfigured, NotInPast, QueryFailed, SourceError, Unreachable
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.settings import Pyth as Group
from quantdeck.sources.pyth import InvalidToken, NotEntitled, Refused, UnknownFeed, clean_token
from quantdeck.sources.pyth.http import HttpPyth
from tests.support.clock import Ticks
from tests.support.held import Held
from tests.support.pyth_stub import FEEDS, KEY, NOBODYS, PARTLY, PythStub, feed

NOW = Now.of(datetime(2026, 6, 1, 12, tzinfo=UTC), fixed=False)
CHANNEL = "fixed_rate@200ms"
AT_US = 1_778_594_100_000_000
AT_ONCE = {"retry-after": "0"}


class Talk:
    """An adapter and the stub that it talks to."""

    def __init__(self, stub, ticks, **said):
        self.stub, self.ticks = stub, ticks
        urls = {"router_url": stub.url, "history_url": stub.url}
        self.pyth = HttpPyth(Group(**{**urls, "retry_s": 0, **said}), clock=ticks)

    async def latest(self, ids=(1,), properties=("price", "exponent"), channel=CHANNEL, token=KEY, now=NOW):
        return await self.pyth.latest(list(ids), list(properties), channel, token=token, as_of=now)

    async def prices(self, ids=(1,), token=None):
        return await self.pyth.prices(list(ids), AT_US, CHANNEL, token=token, as_of=NOW)

    async def candles(self, symbol="Crypto.BTC/USD", token=None, end_s=1_778_594_100):
        return await self.pyth.candles(symbol, "1", end_s - 600, end_s, CHANNEL, token=token, as_of=NOW)


@pytest.fixture
async def talk():
    async with Held() as held:
        talks = []

        async def made(said=None, **traits):
            stub = PythStub(**traits)
            await held.enter(stub.serving())
            talk = Talk(stub, Ticks(), **(said or {}))
            talks.append(talk)
            return talk

        yield made
        for talk in talks:
            await talk.pyth.close()


# what is asked


async def test_the_router_is_asked_by_its_contract(talk):
    it = await talk()
    await it.latest((2, 1), ("price", "exponent"))
    request = it.stub.last("/v1/latest_price")
    assert (request.method, request.headers["authorization"]) == ("POST", f"Bearer {KEY}")
    assert orjson.loads(request.body) == {
        "priceFeedIds": [2, 1], "properties": ["price", "exponent"], "formats": [], "parsed": True, "channel": CHANNEL,
    }  # fmt: skip


async def test_the_history_is_asked_with_the_token_and_without(talk):
    it = await talk()
    await it.prices((1, 2))
    assert it.stub.last("/price").values == {"ids": ["1", "2"], "timestamp": [str(AT_US)]}
    assert "authorization" not in it.stub.last("/price").headers
    await it.candles(token=KEY)
    asked = it.stub.last("/history")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.query == {"symbol": "Crypto.BTC/USD", "from": "1778593500", "to": "1778594100", "resolution": "1"}


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
async def test_both_styles_of_base_address_are_understood(ending):
    async with PythStub().serving() as stub:
        pyth = HttpPyth(Group(router_url=stub.url, history_url=stub.url + ending, retry_s=0))
        await pyth.catalog(token=None)
        await pyth.ping()
        assert (await pyth.document("history"))["info"]["title"] == "/docs/v1/openapi.json"
        assert (await pyth.document("rest"))["info"]["title"] == "/docs/openapi.json"
        assert stub.asked[:2] == ["/v1/symbols", "/v1/live"]
        await pyth.close()


async def test_many_ids_are_asked_in_several_addresses(talk):
    feeds = [{**FEEDS[0], "pyth_lazer_id": number, "symbol": f"Crypto.X{number}/USD"} for number in range(1, 251)]
    it = await talk(feeds=feeds)
    rows = await it.prices(range(1, 251))
    assert [row["price_feed_id"] for row in rows] == list(range(1, 251))
    assert len(it.stub.asked) == 3


async def test_one_connection_serves_what_comes_one_after_the_other(talk):
    it = await talk()
    for _ in range(5):
        await it.latest()
    assert it.stub.http.most_connected == 1


async def test_a_hundred_at_once_share_the_connections_there_are(talk):
    it = await talk(said={"connections": 5})
    await asyncio.gather(*(it.latest() for _ in range(100)))
    assert it.stub.http.most_connected <= 5


@pytest.mark.parametrize(
    "url", ["http://pyth.example", "ftp://pyth.example", "pyth.example", "https://me:secret@pyth.example",
            "https://pyth.example?token=secret", "https://"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["PYTH_ROUTER_URL", "QUANTDECK_PYTH__HISTORY_URL"])
def test_a_token_goes_encrypted_or_nowhere(url, name):
    with pytest.raises(MisconfiguredError, match=name) as refused:
        Settings.read({name: url})
    assert "secret" not in str(refused.value)


# one more try


@pytest.mark.parametrize(
    "first",
    [
        (503, b"", AT_ONCE),
        (429, b"", AT_ONCE),
        (429, b"", {"retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}),
        (503, b"", {"retry-after": format_datetime(datetime(2026, 1, 1, tzinfo=UTC))}),
        (503, b"", {"retry-after": "soon"}),
        (503, b"", {"retry-after": "²"}),
        (503, b"", {"retry-after": f"Thu, 01 Jan {'9' * 30} 00:00:00 GMT"}),
        (503, b""),
        None,
    ],
)
async def test_what_may_pass_is_asked_once_more(talk, first):
    it = await talk(failing=[first])
    assert (await it.latest())["priceFeeds"]
    assert len(it.stub.asked) == 2


@pytest.mark.parametrize(
    "failure, kind",
    [((503, b"", AT_ONCE), Unreachable), ((429, b"", AT_ONCE), Busy), (None, Unreachable)],
)
async def test_there_is_no_third_try(talk, failure, kind):
    it = await talk(failing=[failure] * 3)
    with pytest.raises(kind):
        await it.latest()
    assert len(it.stub.asked) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500, 302])
async def test_what_will_not_pass_is_asked_once(talk, status):
    it = await talk(failing=[(status, b"", {"location": "/v1/elsewhere"})] * 2)
    with pytest.raises(SourceError):
        await it.latest()
    assert len(it.stub.asked) == 1


@pytest.mark.parametrize("status, kind", [(429, Busy), (503, Unreachable)])
@pytest.mark.parametrize(
    "asked, told", [("3600", 3600), ("9" * 400, 86_400), ("Thu, 01 Jan 2199 00:00:00 GMT", 86_400)]
)
async def test_whoever_is_to_wait_for_long_is_told_so_at_once(talk, status, kind, asked, told):
    it = await talk(failing=[(status, b"", {"retry-after": asked})])
    with pytest.raises(kind, match=f"again in {told} s") as failed:
        await it.latest()
    assert (failed.value.details["retry_after_s"], len(it.stub.asked)) == (told, 1)


def test_a_pause_is_what_the_service_asks_for():
    api = PythApi(Group(retry_s=0.5))
    assert [api._pause(said) for said in ("3", "0", "Thu, 01 Jan 1970 00:00:00 GMT")] == [3, 0, 0]
    assert all(0.5 <= api._pause(said) <= 0.7 for said in (None, "soon", "", "-1", "1.5", "²"))


async def test_a_body_that_stalls_is_given_up_after_two_tries(talk):
    it = await talk(said={"request_timeout_ms": 300}, stalled=asyncio.Event())
    with pytest.raises(Unreachable, match=r"^Pyth Pro API timed out\.") as failed:
        await it.latest()
    assert failed.value.details["type"] == "timeout"
    it.stub.stalled.set()
    assert len(it.stub.asked) == 2


async def test_where_nothing_of_pyth_is_set_it_is_disabled_rather_than_out_of_reach():
    with pytest.raises(NotConfigured, match="PYTH_PRO_ACCESS_TOKEN"):
        await HttpPyth(Group()).ping()


async def test_where_it_is_set_it_is_asked(talk):
    it = await talk(failing=[(500, b"")])
    with pytest.raises(Unreachable):
        await it.pyth.ping()
    await it.pyth.ping()
    assert it.stub.asked == ["/v1/live"] * 2


# what is answered


async def test_integers_stay_exact(talk):
    it = await talk()
    (row,) = (await it.latest([112], ("price", "fundingRate", "exponent")))["priceFeeds"]
    assert row == {"priceFeedId": 112, "price": "80813667608700001", "fundingRate": 38_770_000, "exponent": -12}
    (past,) = await it.prices([112])
    assert (past["price"], past["confidence"]) == (80_813_667_608_700_001, None)


@pytest.mark.parametrize(
    "status, body, kind",
    [
        (401, b"", InvalidToken),
        (403, b"Not entitled: feed 327 (no grant accepts this feed)", NotEntitled),
        (403, b"Unknown feed: 4000000", UnknownFeed),
        (403, b"", NotEntitled),
        (404, b"symbol not found.", UnknownFeed),
        (400, b"Price feed id 3063 is not available for channel real_time", Refused),
        (422, b"bad shape", Refused),
        (500, b"", Unreachable),
        (418, b"", Unreachable),
        (200, b"{", Unreachable),
        (200, b"[]", Unreachable),
        (200, b'{"parsed": null}', Unreachable),
        (200, b'{"parsed": {"priceFeeds": 3}}', Unreachable),
        (200, b'{"parsed": {"priceFeeds": []}}', Unreachable),
        (200, b'{"parsed": {"priceFeeds": [], "timestampUs": 1.5}}', Unreachable),
    ],
)
async def test_each_failure_is_of_its_kind(talk, status, body, kind):
    it = await talk(failing=[(status, body)])
    with pytest.raises(kind) as failed:
        await it.latest()
    assert type(failed.value) is kind


async def test_a_refusal_names_its_feed_and_reason(talk):
    it = await talk()
    with pytest.raises(NotEntitled, match="asset type 'fx'") as refused:
        await it.latest([1, 327], token=PARTLY)
    assert refused.value.feed_id == 327
    it.stub.failing = [(400, b'{"error": {"why": "a wrapped one"}}'), (400, b"x" * 9999), (400, b"a\x00\n\tb")]
    said = []
    for _ in range(3):
        with pytest.raises(Refused) as failed:
            await it.latest()
        said.append(failed.value.reason)
    assert ("a wrapped one" in said[0], len(said[1]), said[2]) == (True, 300, "a b")


async def test_without_a_token_a_history_that_wants_one_says_so(talk):
    it = await talk(history_needs_key=True)
    for ask in (it.prices, it.candles):
        with pytest.raises(InvalidToken, match="requires a Pyth Pro access token"):
            await ask()
        with pytest.raises(InvalidToken, match="invalid or expired"):
            await ask(token=NOBODYS)


@pytest.mark.parametrize(
    "told",
    [
        {"s": "ok", "t": [60, 120], "o": [1], "h": [1, 2], "l": [1, 2], "c": [1, 2], "v": [0, 0]},
        {"s": "ok", "t": 3},
        [],
    ],
)
async def test_candles_that_make_no_sense_are_an_answer_of_unknown_shape(talk, told):
    it = await talk(candles=lambda *_: told)
    with pytest.raises(Unreachable, match="shape"):
        await it.candles()


async def test_a_candle_with_a_hole_is_left_out_and_the_rest_are_in_order(talk):
    told = {"s": "ok", "t": [300, 240, 180, 240], "o": [1, 2, None, 3], "h": [1, 2, 3, 3], "l": [1, 2, 3, 3],
            "c": [1, 2, 3, 3], "v": []}  # fmt: skip
    it = await talk(candles=lambda *_: told)
    found = await it.candles(end_s=600)
    assert (found.t, found.o, found.v) == ([240, 300], [3, 1], [0, 0])


@pytest.mark.parametrize("told", [{"s": "no_data"}, {"s": "no_data", "t": []}, {"s": "ok", "t": []}])
async def test_no_candles_are_none(talk, told):
    it = await talk(candles=lambda *_: told)
    assert len(await it.candles()) == 0


async def test_candles_that_the_service_could_not_make_are_a_failure(talk):
    it = await talk(candles=lambda *_: {"s": "error", "errmsg": "no"})
    with pytest.raises(QueryFailed):
        await it.candles()


async def test_an_answer_that_is_too_large_is_not_read_to_its_end(talk):
    it = await talk(said={"max_answer_mb": 0.01}, failing=[(200, b"x" * 20_000)])
    with pytest.raises(QueryFailed, match="too large"):
        await it.latest()


async def test_the_latest_prices_have_no_past(talk):
    it = await talk()
    with pytest.raises(NotInPast, match="2026-06-01T12:00:00Z"):
        await it.latest(now=Now.of(NOW, fixed=True))
    assert it.stub.asked == []


# the list of feeds


async def test_the_list_is_fetched_once_for_all_who_want_it(talk):
    it = await talk()
    lists = await asyncio.gather(*(it.pyth.catalog(token=None) for _ in range(20)))
    assert len({id(one) for one in lists}) == 1
    assert it.stub.asked == ["/v1/symbols"]


async def test_each_token_has_its_own_list_and_none_is_kept_for_good(talk):
    it = await talk()
    for token in (None, KEY, PARTLY, KEY):
        await it.pyth.catalog(token=token)
    assert len(it.stub.asked) == 3
    it.ticks.advance(301)
    await it.pyth.catalog(token=KEY)
    assert len(it.stub.asked) == 4


async def test_the_list_for_everybody_outlives_those_of_many_tokens(talk):
    it = await talk()
    await it.pyth.catalog(token=None)
    for number in range(15):
        await it.pyth.catalog(token=f"{NOBODYS}{number}")
    before = len(it.stub.asked)
    await it.pyth.catalog(token=None)
    await it.pyth.catalog(token=f"{NOBODYS}14")
    assert len(it.stub.asked) == before
    await it.pyth.catalog(token=f"{NOBODYS}0")
    assert len(it.stub.asked) == before + 1


async def test_an_outage_is_remembered_for_a_moment_and_a_refusal_is_not(talk):
    it = await talk(failing=[(500, b"")])
    for _ in range(3):
        with pytest.raises(Unreachable):
            await it.pyth.catalog(token=None)
    assert len(it.stub.asked) == 1
    it.ticks.advance(11)
    assert (await it.pyth.catalog(token=None)).feeds
    it.stub.failing = [(401, b"")] * 2
    for _ in range(2):
        with pytest.raises(InvalidToken):
            await it.pyth.catalog(token=KEY)
    assert (await it.pyth.catalog(token=KEY)).feeds


async def test_one_who_stops_waiting_takes_the_list_from_nobody(talk):
    it = await talk(stalled=asyncio.Event())
    first, second = (asyncio.ensure_future(it.pyth.catalog(token=None)) for _ in range(2))
    await it.stub.arrived.wait()
    first.cancel()
    it.stub.stalled.set()
    assert (await second).feeds


async def test_rows_that_make_no_sense_are_dropped_and_the_rest_are_there(talk):
    it = await talk(feeds=[None, {"pyth_lazer_id": "x"}, *FEEDS, 7])
    assert len((await it.pyth.catalog(token=None)).feeds) == len(FEEDS)


async def test_the_whole_list_takes_little_memory_and_nonsense_of_its_size_is_nonsense(talk):
    rows = [feed(n, f"Crypto.X{n}/USD", "A COIN", pad="x" * 350) for n in range(1, 3501)]
    body = orjson.dumps(rows)
    it = await talk(feeds=rows)
    await it.pyth.ping()  # whatever is imported on the way is none of it
    tracemalloc.start()
    try:
        catalog = await it.pyth.catalog(token=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(catalog.feeds), len(body) > 3_000_000, peak < 40 * 2**20) == (3500, True, True)
    for nonsense in (b"[" * 600_000, body[:-1], body.replace(b'"exponent":-8', b'"exponent":NaN')):
        it.stub.failing = [(200, nonsense)]
        it.ticks.advance(400)
        with pytest.raises(Unreachable, match="no JSON"):
            await it.pyth.catalog(token=None)


async def test_what_a_token_covers_is_a_list_of_its_own(talk):
    it = await talk()
    assert await it.pyth.covered(token=PARTLY) == {
        row["pyth_lazer_id"] for row in FEEDS if row["asset_type"] == "crypto"
    }
    assert it.stub.last("/symbols").query == {"entitled_only": "true"}


# the token


@pytest.mark.parametrize("token", ["a b", "a\nb", "a\r\nx: y", "a\x00b", "tökén", "a\tb", "\n"])
def test_a_token_that_no_header_can_hold_is_refused_and_not_repeated(token):
    with pytest.raises(InvalidToken) as refused:
        clean_token(token)
    assert token not in str(refused.value)


@pytest.mark.parametrize(
    "token, clean",
    [(None, None), ("", None), ("   ", None), (" abc ", "abc"), ("Bearer abc", "abc"), (" bEARER   abc ", "abc")],
)
def test_blanks_around_a_token_are_none_of_it(token, clean):
    assert clean_token(token) == clean


async def test_the_token_is_in_no_error_no_log_and_no_address(talk, caplog):
    caplog.set_level(logging.DEBUG)
    echo = f"no such key: {KEY}, Bearer {KEY}, bearer {NOBODYS}".encode()
    it = await talk(failing=[(status, echo) for status in (400, 401, 403, 404, 500)])
    told = []
    for _ in range(5):
        with pytest.raises(SourceError) as failed:
            await it.latest()
        error: BaseException | None = failed.value
        while error is not None:
            told.append(f"{error!r} {error} {vars(error)}")
            error = error.__cause__
    await it.pyth.catalog(token=KEY)
    told += [f"{request.path}{request.values}" for request in it.stub.http.heard]
    heard = " ".join([*told, caplog.text, repr(vars(it.pyth)), repr(vars(it.pyth._api))])
    assert KEY not in heard
    assert NOBODYS not in heard
