"""pyth-pro over HTTP: each client's own token, and ids that tell its calls from others'."""

from __future__ import annotations

import orjson
import pytest
from mcp_types import ResourceTemplateReference

from quantdeck.servers import load
from quantdeck.settings import Pyth
from tests.support.contracts import contract_of
from tests.support.hunt import MARK
from tests.support.over_http import body_of, call, modern, modern_headers, served
from tests.support.pyth_stub import FEEDS, KEY, NOBODYS, PARTLY, PythStub

ERRORS = contract_of("pyth")["errors"]
ASKED = {"ids": [1]}


def made(_):
    return (load("pyth-pro"),)


def group(stub, **said):
    return Pyth(router_url=stub.url, history_url=stub.url, retry_s=0, **said)


def used(stub):
    return stub.last("/latest_price").headers["authorization"]


@pytest.mark.parametrize("stateless", [False, True])
async def test_each_client_is_answered_with_its_own_token(tmp_path, stateless):
    async with (
        PythStub().serving() as stub,
        served(tmp_path, make=made, stateless=stateless, pyth=group(stub, access_token=NOBODYS)) as server,
    ):
        for token in (KEY, PARTLY):
            headers = {"X-Pyth-Access-Token": token}
            answer = await server.rest("get_latest_price", headers, arguments=ASKED)
            assert (answer.status_code, used(stub)) == (200, f"Bearer {token}")
            server.http.headers |= headers
            for era in ("legacy", "auto"):
                async with server.client(era) as client:
                    assert not (await client.call_tool("get_latest_price", ASKED)).is_error
                assert used(stub) == f"Bearer {token}"
            del server.http.headers["x-pyth-access-token"]
        refused = await server.rest("get_latest_price", arguments=ASKED)
        assert (refused.status_code, used(stub)) == (401, f"Bearer {NOBODYS}")
        hashes = {event["token_hash"] for event in server.events}
        assert len(hashes) == 3
        assert not any(token in str(server.events) for token in (KEY, PARTLY, NOBODYS))


async def test_a_clients_token_that_is_none_is_not_repeated(tmp_path):
    async with PythStub().serving() as stub, served(tmp_path, make=made, pyth=group(stub)) as server:
        answer = await server.rest("get_latest_price", {"X-Pyth-Access-Token": f"Basic {MARK}"}, arguments=ASKED)
        assert (answer.status_code, MARK in answer.text) == (401, False)
        assert ERRORS["invalid_token"] in answer.text
        assert stub.asked == []


@pytest.mark.parametrize(
    "arguments, status",
    [(ASKED, 401), ({"ids": [1], "channel": "x"}, 400), ({"bogus": 1}, 400), ({}, 400)],
)
async def test_over_rest_a_failure_has_its_status(tmp_path, arguments, status):
    async with PythStub().serving() as stub, served(tmp_path, make=made, pyth=group(stub)) as server:
        assert (await server.rest("get_latest_price", arguments=arguments)).status_code == status


async def test_without_sessions_calls_are_told_apart_by_their_own_ids(tmp_path):
    async with (
        PythStub().serving() as stub,
        served(tmp_path, make=made, stateless=True, pyth=group(stub, access_token=KEY)) as server,
    ):
        for number in (1, 2):
            answer = await server.modern("get_symbols", limit=number)
            assert body_of(answer)["result"]["structuredContent"]["count"] == number
        first, second = server.events
        assert first["request_id"] != second["request_id"]
        assert first["session_id"] == second["session_id"]
        assert first["client_ip_hash"] == second["client_ip_hash"]
        assert {first["transport"], second["transport"]} == {"http"}


@pytest.mark.parametrize("sent", [f"Bearer {KEY}", f"bearer   {KEY}"], ids=["usual", "odd"])
async def test_a_clients_token_may_be_sent_as_a_bearer(tmp_path, sent):
    async with PythStub().serving() as stub, served(tmp_path, make=made, pyth=group(stub)) as server:
        assert (
            await server.rest("get_latest_price", {"X-Pyth-Access-Token": sent}, arguments=ASKED)
        ).status_code == 200
        assert used(stub) == f"Bearer {KEY}"


async def test_of_two_tokens_the_first_counts_by_every_way_in(tmp_path):
    headers = [("x-pyth-access-token", KEY), ("x-pyth-access-token", NOBODYS)]
    async with PythStub().serving() as stub, served(tmp_path, make=made, pyth=group(stub)) as server:
        message = modern(call("get_latest_price", ids=[1]))
        for path, body, more in (
            ("/mcp/tools/call", {"name": "get_latest_price", "arguments": ASKED}, {}),
            ("/mcp", message, modern_headers(message)),
        ):
            answer = await server.http.post(path, json=body, headers=[*headers, *more.items()])
            assert (answer.status_code, used(stub)) == (200, f"Bearer {KEY}")


async def test_a_blank_header_is_none(tmp_path):
    async with PythStub().serving() as stub, served(tmp_path, make=made, pyth=group(stub, access_token=KEY)) as server:
        answer = await server.rest("get_latest_price", {"X-Pyth-Access-Token": ""}, arguments=ASKED)
        assert answer.status_code == 200
        assert used(stub) == f"Bearer {KEY}"


async def test_what_a_token_alone_may_see_is_in_nobody_elses_answer(tmp_path):
    """By the tool, by the resource, which is kept for a day, and by the completion."""
    pro_only = frozenset({327, 3183})  # all that there is of currencies
    async with PythStub(pro_only=pro_only).serving() as stub, served(tmp_path, make=made, pyth=group(stub)) as server:
        ref = ResourceTemplateReference(uri="pyth://feeds/{asset_type}")
        seen = []
        for token in ("", KEY, PARTLY, KEY, ""):
            server.http.headers["x-pyth-access-token"] = token
            async with server.client("auto") as client:
                found = (await client.call_tool("get_symbols", {"asset_type": "fx"})).structured_content
                (listed,) = (await client.read_resource("pyth://feeds")).contents
                kinds = (await client.complete(ref, {"name": "asset_type", "value": "f"})).completion.values
                price = await client.call_tool("get_latest_price", {"symbols": ["FX.EUR/USD"]})
            whole = orjson.loads(listed.text)["count"]  # type: ignore[union-attr]
            seen.append((found["count"], whole, kinds, price.is_error))
        public, whole = len(FEEDS) - len(pro_only), len(FEEDS)
        without, with_all = (0, public, ["funding-rate"], True), (2, whole, ["funding-rate", "fx"], False)
        assert seen == [without, with_all, without, with_all, without]
