"""Each code of the catalog that its built tools can answer, by REST and by MCP."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import orjson
import pytest

from quantdeck.core.server import Server
from quantdeck.dialects.catalog import catalog
from quantdeck.servers import load
from quantdeck.settings import SharedState
from tests.support.over_http import Served, call, served

SET, GET = "storage.shared_state.set", "storage.shared_state.get"
PLACE = {"corr_id": "c", "key": "k"}
Asked = Callable[..., Any]


@catalog.tool("fixture.wrong", deadline_ms=5000, p95_ms=10, per_minute=100)
async def wrong() -> dict[str, int]:
    """Answer what the schema forbids"""
    return {"count": "many"}  # type: ignore[dict-item]


@catalog.tool("fixture.broken", deadline_ms=5000, p95_ms=10, per_minute=100)
async def broken() -> dict[str, int]:
    """Fail in a way that nobody foresaw"""
    raise ZeroDivisionError


FIXTURE = Server(name="fixture", purpose="Tools that go wrong", tools=(wrong, broken))


@pytest.fixture(params=["rest", "mcp", "legacy mcp"])
def ask(request: pytest.FixtureRequest) -> Asked:
    """One call by this way in: the code, the status where there is one, and the whole failure."""

    async def asked(server: Served, tool: str, once: str | None = None, /, **arguments: Any) -> tuple[str | None, Any]:
        if request.param == "rest":
            metadata = {"metadata": {"idempotency_key": once}} if once else {}
            body = (await server.rest(tool, arguments=arguments, **metadata)).json()
            return body.get("code"), body
        if request.param == "mcp":
            async with server.client("auto") as client:
                meta: Any = {"quantdeck/idempotency_key": once} if once else None
                result = await client.call_tool(tool, arguments, meta=meta)
                body = orjson.loads(result.content[0].text)  # type: ignore[union-attr]
                assert (result.structured_content is None) is result.is_error
                return body.get("code") if result.is_error else None, body
        session = await server.session()
        meta = {"quantdeck/idempotency_key": once} if once else {}
        told = (await session.post(call(tool, meta=meta, **arguments))).text
        result = json.loads(told[told.index("{") :].splitlines()[0])["result"]
        body = orjson.loads(result["content"][0]["text"])
        return body.get("code"), body

    return asked


async def test_mcp_001_and_005_and_014(serving, kept, ask):
    async with serving(**kept, shared_state=SharedState(quota_keys=2)) as server:
        code, body = await ask(server, SET, corr_id="not one", key="k", value=1)
        assert (code, body["message"][:19]) == ("MCP-001", "Invalid arguments: ")
        assert (await ask(server, SET, "key", **PLACE, value=1))[0] is None
        assert (await ask(server, SET, "key", **PLACE, value=1))[0] is None
        code, body = await ask(server, SET, "key", **PLACE, value=1_000_000)
        assert (code, body["details"]["idempotency_key"]) == ("MCP-005", "key")
        await ask(server, SET, corr_id="c", key="k2", value=1)
        code, body = await ask(server, SET, corr_id="c", key="k3", value=1)
        assert (code, body["details"]) == ("MCP-014", {"quota": "keys", "used": 2, "max": 2})


async def test_mcp_002_for_who_may_only_read(serving, kept, ask, tmp_path):
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps([{"id": "r", "sha256": sha256(b"reader").hexdigest(), "scopes": ["read"]}]))
    tokens.chmod(0o600)
    async with serving(**kept, tokens=tokens, headers={"authorization": "Bearer reader"}) as server:
        assert (await ask(server, GET, **PLACE))[0] is None
        code, body = await ask(server, SET, **PLACE, value=1)
        assert (code, body["details"]["scope"]) == ("MCP-002", "write")


async def test_mcp_006(serving, kept, ask):
    async with serving(**kept, per_minute={GET: 1}) as server:
        assert (await ask(server, GET, **PLACE))[0] is None
        code, body = await ask(server, GET, **PLACE)
        assert (code, body["details"]["limit"]) == ("MCP-006", 1)
        assert 0 < body["details"]["retry_after_s"] <= 60


async def test_mcp_009_and_999_are_failures_of_ours_and_tell_nothing_of_the_inside(tmp_path, ask):
    async with served(tmp_path, make=lambda _: (load("tools-catalog"), FIXTURE)) as server:
        code, body = await ask(server, "fixture.wrong")
        assert (code, "many" in json.dumps(body)) == ("MCP-009", False)
        code, body = await ask(server, "fixture.broken")
        assert (code, "ZeroDivision" in json.dumps(body)) == ("MCP-999", False)


async def test_a_call_that_never_became_one_leaves_a_trace(serving, caplog):
    caplog.set_level("INFO", logger="quantdeck")
    async with serving(auth_token="t") as server:
        told = [await server.rest(GET, {"x-correlation-id": "c-1"})]
        told.append(await server.rest("no.such", {"x-correlation-id": "c-2", "authorization": "Bearer t"}))
    assert [answer.json()["code"] for answer in told] == ["MCP-002", "MCP-007"]
    traces = [record.fields for record in caplog.records if record.message == "refused"]
    assert [(trace["error_code"], trace["correlation_id"]) for trace in traces] == [
        ("MCP-002", "c-1"),
        ("MCP-007", "c-2"),
    ]
