"""Signed requests: who holds the secret may call, and each call counts once, for all replicas together."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from pydantic import SecretStr

from quantdeck.core.errors import Unreachable
from quantdeck.settings import Settings
from quantdeck.transports.auth import Tokens
from quantdeck.transports.signatures import WINDOW_S, Signatures
from tests.support import redis
from tests.support.over_http import PLAIN, Served, modern, modern_headers, served

SECRET = "a secret of both sides"
PATH = "/mcp/tools/call"
BODY = json.dumps({"name": "fixture.add", "arguments": {"left": 2, "right": 3}}).encode()


def signed(
    body: bytes = BODY,
    *,
    method: str = "POST",
    path: str = PATH,
    age_s: float = 0,
    nonce: str = "",
    secret: str = SECRET,
    with_nonce: bool = True,
) -> dict[str, str]:
    timestamp, nonce = str(int(time.time() - age_s)), nonce or uuid4().hex
    begins = f"{method}|{path}|{timestamp}|" + (f"{nonce}|" if with_nonce else "")
    signature = hmac.new(secret.encode(), begins.encode() + body, sha256).hexdigest()
    return {**PLAIN, "x-timestamp": timestamp, "x-nonce": nonce, "x-signature": signature}


async def sent(server: Served, headers: dict[str, str], body: bytes = BODY, path: str = PATH) -> httpx2.Response:
    return await server.http.post(path, content=body, headers=headers)


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.services)])
async def replicas(request, tmp_path):
    """Two servers with one secret, which know of one another by a home or a Redis."""
    said: dict[str, Any] = {"hmac_secret": SECRET}
    if request.param == "redis":
        said |= {"state": redis.available().url, "redis": redis.keyed()}
    async with served(tmp_path, migrated=True, **said) as first, served(tmp_path, **said) as second:
        yield first, second


@pytest.fixture
def server(replicas) -> Any:
    return replicas[0]


@pytest.mark.parametrize("with_nonce", [True, False])
async def test_whoever_signs_rightly_may_call(server, with_nonce):
    answer = await sent(server, signed(with_nonce=with_nonce))
    assert (answer.status_code, answer.json()["data"]["length"]) == (200, 5)
    assert server.events[-1]["caller"] == "hmac"


async def test_every_way_in_can_be_signed(server):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    message = modern({**message, "params": {"name": "fixture_add", "arguments": {"left": 1, "right": 1}}})
    body = json.dumps(message).encode()
    answer = await sent(server, {**modern_headers(message), **signed(body, path="/mcp")}, body, "/mcp")
    assert answer.json()["result"]["structuredContent"]["length"] == 2
    scraped = await server.http.get("/metrics", headers=signed(b"", method="GET", path="/metrics"))
    assert scraped.status_code == 200
    health = await server.http.get("/health", headers=signed(b"", method="GET", path="/health"))
    assert "dependencies" in health.json()


async def test_without_a_signature_nobody_is_let_in_but_to_bare_health(server):
    answer = await sent(server, PLAIN)
    assert (answer.status_code, answer.json()["code"]) == (401, "MCP-002")
    assert "signature" in answer.json()["message"]
    assert (await server.http.get("/health")).json() == {"status": "ok"}
    assert Tokens(Settings(hmac_secret=SecretStr(SECRET))).required


Change = Callable[[dict[str, str]], dict[str, str]]
TAMPERED: dict[str, Change] = {
    "another secret": lambda _: signed(secret="other"),
    "another body": lambda _: signed(BODY + b" "),
    "another path": lambda _: signed(path="/mcp/tools/list"),
    "another method": lambda _: signed(method="GET"),
    "another time": lambda said: {**said, "x-timestamp": str(int(said["x-timestamp"]) - 1)},
    "another nonce": lambda said: {**said, "x-nonce": "other"},
    "no signature in it": lambda said: {**said, "x-signature": ""},
    "not hexadecimal": lambda said: {**said, "x-signature": "\u00e9" * 64},
    "too old": lambda _: signed(age_s=WINDOW_S + 5),
    "too new": lambda _: signed(age_s=-WINDOW_S - 5),
    "no time": lambda said: {name: value for name, value in said.items() if name != "x-timestamp"},
    "a time that is none": lambda said: {**said, "x-timestamp": "now"},
    "a time beyond all numbers": lambda said: {**said, "x-timestamp": "9" * 400},
    "no nonce": lambda said: {name: value for name, value in said.items() if name != "x-nonce"},
    "a nonce without end": lambda said: {**said, "x-nonce": "n" * 129},
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
async def test_what_was_tampered_with_is_mcp_002(server, change):
    headers = {name: value.encode("utf-8") for name, value in change(signed()).items()}
    answer = await server.http.post(PATH, content=BODY, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "MCP-002")
    assert server.events == []


async def test_a_request_counts_once_for_all_replicas(replicas):
    first, second = replicas
    headers = signed()
    assert (await sent(first, headers)).status_code == 200
    for server in (first, second):
        again = await sent(server, headers)
        assert (again.status_code, again.json()["code"]) == (401, "MCP-002")
        assert "before" in again.json()["message"]


async def test_a_copy_with_another_nonce_is_refused_also_where_the_nonce_was_not_signed(replicas):
    headers = signed(with_nonce=False)
    assert (await sent(replicas[0], headers)).status_code == 200
    assert (await sent(replicas[1], {**headers, "x-nonce": "another"})).status_code == 401
    assert (await sent(replicas[1], {**headers, "x-signature": headers["x-signature"].upper()})).status_code == 401


async def test_a_nonce_is_used_once_whatever_it_signs(server):
    assert (await sent(server, signed(nonce="n-1"))).status_code == 200
    assert (await sent(server, signed(nonce="n-1", age_s=10))).status_code == 401
    assert (await sent(server, signed(nonce="n-2", age_s=10))).status_code == 200


async def test_a_wrong_signature_uses_no_nonce_up(server):
    assert (await sent(server, signed(nonce="n-1", secret="other"))).status_code == 401
    assert (await sent(server, signed(nonce="n-1"))).status_code == 200


async def test_the_same_call_signed_anew_is_another_request_and_its_key_still_replays(server):
    body = json.dumps({"name": "fixture.note", "arguments": {"text": "once"}}).encode()
    answers = [await sent(server, {**signed(body), "idempotency-key": "k"}, body) for _ in range(2)]
    assert [answer.json()["data"]["notes"] for answer in answers] == [["once"], ["once"]]


async def test_a_bearer_is_let_in_beside_signatures_and_does_not_excuse_a_wrong_one(tmp_path):
    async with served(tmp_path, hmac_secret=SECRET, auth_token="bearer-1") as server:
        bearer = {"authorization": "Bearer bearer-1"}
        assert (await sent(server, {**PLAIN, **bearer})).status_code == 200
        assert (await sent(server, {**signed(secret="other"), **bearer})).status_code == 401


async def test_where_nobody_has_a_secret_a_signature_says_nothing(tmp_path):
    async with served(tmp_path) as server:
        assert (await sent(server, signed())).status_code == 200


async def test_where_nobody_can_tell_whether_it_was_seen_it_is_refused():
    class Gone:
        async def first(self, name: str, within_s: float) -> bool:
            raise Unreachable("No connection to Redis.", source="redis")

    from quantdeck.transports.asgi import Refused

    headers = [(name.encode(), value.encode()) for name, value in signed().items()]
    scope: Any = {"method": "POST", "path": PATH, "headers": headers}
    with pytest.raises(Refused, match="No connection to Redis") as refused:
        await Signatures(SECRET, Gone()).identify(scope, BODY)  # type: ignore[arg-type]
    assert refused.value.status == 503


async def test_the_window_is_five_minutes_to_the_second():
    said = signed()
    scope: Any = {"headers": [(name.encode(), value.encode()) for name, value in said.items()]}
    sent_at = int(said["x-timestamp"])
    for skew, let_in in ((-WINDOW_S - 1, False), (-WINDOW_S, True), (WINDOW_S, True), (WINDOW_S + 1, False)):
        signatures = Signatures(SECRET, None, clock=lambda skew=skew: sent_at + skew)  # type: ignore[arg-type, misc]
        if let_in:
            signatures.check_time(scope)
        else:
            with pytest.raises(Exception, match="clock"):
                signatures.check_time(scope)
