"""What the log says of calls to pyth-pro, whatever became of them."""

from __future__ import annotations

import pytest
from mcp.shared.exceptions import MCPError

from quantdeck.servers import load
from quantdeck.settings import Pyth
from tests.support.contracts import contract_of
from tests.support.over_http import body_of, served
from tests.support.pyth_stub import KEY, PARTLY, TRIAL, PythStub

SPEC = contract_of("pyth")
EVERY_CALL = set(SPEC["log_fields"]) - set(SPEC["log_optional"]) - {"timestamp"}  # which is the writer's


@pytest.mark.parametrize(
    "tool, wrong, told",
    [
        ("get_latest_price", {"symbols": ["BTC/USD", 7], "bogus": 1, "channel": "real_time"}, {
            "symbols_queried": ["BTC/USD"], "channel": "real_time", "num_feeds": 1}),
        ("get_historical_price", {"ids": [1, 2], "timestamp": "noon"}, {"feed_ids_queried": [1, 2], "num_feeds": 2}),
        ("get_candlestick_data", {"symbol": "BTC/USD", "channel": 3}, {"symbols_queried": ["BTC/USD"], "channel": ""}),
        ("get_symbols", {"asset_type": "fx", "limit": -1}, {"asset_types": ["fx"], "num_feeds": 0}),
        ("get_latest_price", {"symbols": "x" * 9999, "properties": ["y" * 9999] * 9999}, {"symbols_queried": []}),
    ],
)  # fmt: skip
async def test_a_call_that_was_no_proper_request_has_every_field_too(pyth, tool, wrong, told):
    ask = await pyth()
    with pytest.raises(MCPError):
        await ask.client.call_tool(tool, wrong)
    (event,) = ask.events
    assert event.keys() >= EVERY_CALL
    assert {name: event[name] for name in told} == told
    assert (event["status"], event["error_type"], event["has_token"]) == ("error", "invalid_input", True)
    assert len(event["token_hash"]) == 8
    assert len(str(event)) < 60_000


async def test_a_kept_answer_says_whose_token_it_was_asked_with(pyth):
    ask = await pyth()
    for _ in range(2):
        await ask.client.read_resource("pyth://feeds/crypto")
    fresh, kept = ask.events
    assert (fresh["cached"], kept["cached"]) == (False, True)
    assert kept.keys() >= EVERY_CALL
    assert (kept["has_token"], kept["token_hash"]) == (True, fresh["token_hash"])
    assert kept["asset_types"] == ["crypto"]


@pytest.mark.parametrize("token", ["", "   "])
async def test_a_blank_token_is_none(pyth, token):
    ask = await pyth(token)
    await ask.client.read_resource("pyth://docs/chains")
    await ask("get_symbols")
    assert [(event["has_token"], event["token_hash"]) for event in ask.events] == [(False, "")] * 2


async def test_a_service_that_takes_no_more_calls_has_failed_and_nobodys_input_was_invalid(pyth):
    ask = await pyth(stub=PythStub(failing=[(429, b"", {"retry-after": "99"})], on_path="/latest_price"))
    kind, said = await ask.refused("get_latest_price", ids=[1])
    assert (kind, said) == ("rate_limited", "Pyth Pro takes no more calls for now; try again in 99 s.")
    assert (ask.events[0]["error_type"], ask.events[0]["error_code"]) == ("upstream", "rate_limited")


def made(_):
    return (load("pyth-pro"),)


def group(stub, **said):
    return Pyth(router_url=stub.url, history_url=stub.url, retry_s=0, **said)


async def test_without_sessions_a_clients_calls_have_one_id_and_anothers_have_another(tmp_path):
    ids = {}
    async with PythStub().serving() as stub:
        for replica in ("a", "b"):
            async with served(tmp_path, make=made, stateless=True, pyth=group(stub, access_token=KEY)) as server:
                for client, headers in {"own": {"x-pyth-access-token": PARTLY}, "shared": {}}.items():
                    server.http.headers.pop("x-pyth-access-token", None)
                    server.http.headers |= headers
                    assert body_of(await server.modern("get_symbols"))["result"]
                    await server.rest("get_symbols", arguments={})
                    # what a client says of itself makes it nobody else
                    await server.rest("get_symbols", {"mcp-session-id": "made-up", "user-agent": "x"}, arguments={})
                    for era in ("legacy", "auto"):
                        async with server.client(era) as sdk:
                            await sdk.call_tool("get_symbols", {})
                    told = [event["session_id"] for event in server.events]
                    ids[replica, client] = set(told)
                    server.events.clear()
    assert all(len(told) == 1 for told in ids.values())
    assert ids["a", "own"] == ids["b", "own"] != ids["a", "shared"] == ids["b", "shared"]


async def test_with_sessions_each_has_an_id_of_its_own(tmp_path):
    async with PythStub().serving() as stub, served(tmp_path, make=made, pyth=group(stub)) as server:
        for _ in range(2):
            async with server.client("legacy") as client:
                for _ in range(2):
                    await client.call_tool("get_symbols", {})
        first, again, second, _ = [event["session_id"] for event in server.events]
        assert first == again != second


async def test_no_address_of_a_caller_is_in_the_log(tmp_path):
    async with PythStub().serving() as stub, served(tmp_path, make=made, pyth=group(stub)) as server:
        await server.rest("get_symbols", arguments={})
        (event,) = server.events
        assert "127.0.0.1" not in str(event)
        assert event["caller"] == event["client_ip_hash"]


async def test_trial_calls_are_counted_for_who_makes_up_sessions_too(tmp_path):
    async with (
        PythStub(covered={TRIAL: None}).serving() as stub,
        served(tmp_path, make=made, stateless=True, pyth=group(stub, server_token=TRIAL, trial_rate_limit=2)) as server,
    ):
        told = []
        for number in range(3):
            headers = {"mcp-session-id": f"{number}", "user-agent": f"{number}"}
            told.append((await server.rest("get_latest_price", headers, arguments={"ids": [1]})).status_code)
        assert told == [200, 200, 429]
        assert 'mcp_rate_limit_hits_total{client="' in (await server.http.get("/metrics")).text


async def test_each_session_has_trial_calls_of_its_own(tmp_path):
    async with (
        PythStub(covered={TRIAL: None}).serving() as stub,
        served(tmp_path, make=made, pyth=group(stub, server_token=TRIAL, trial_rate_limit=1)) as server,
    ):
        failed = []
        for _ in range(2):
            async with server.client("legacy") as client:
                failed += [(await client.call_tool("get_latest_price", {"ids": [1]})).is_error for _ in range(2)]
        assert failed == [False, True, False, True]
