"""Whatever is thrown at REST, by schema and against it, is answered in the envelope, and never by a failure of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode

from quantdeck.servers import load
from tests.support.node import environment
from tests.support.serving import QUANTDECK, serving

TOOLS = load("tools-catalog").tools
CODES = {200: None, 400: "MCP-001", 404: "MCP-007", 413: "MCP-001", 415: "MCP-001", 507: "MCP-014"}
METADATA = {"type": "object", "properties": {"corr_id": {"type": "string", "pattern": "^[a-z0-9]{1,20}$"}}}


def _operation() -> Any:
    """The facade as OpenAPI: a body for each tool, with that tool's own schema."""
    bodies = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": tool.input_schema, "metadata": METADATA},
            "required": ["name", "arguments"],
        }
        for tool in TOOLS
        if tool.name.startswith("storage.")  # of which nothing but the arguments decides whether they succeed
    ]
    call = {
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"oneOf": bodies}}}},
        "responses": {"default": {"description": "The envelope"}},
    }
    facade = {
        "openapi": "3.1.0",
        "info": {"title": "tools-catalog", "version": "1"},
        "paths": {"/mcp/tools/call": {"post": call}},
    }
    return schemathesis.openapi.from_dict(facade)["/mcp/tools/call"]["POST"]


OPERATION = _operation()
bounded = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("fuzz")
    limits = ",".join(f'"{tool.name}":0' for tool in TOOLS)
    env = environment(
        home,
        QUANTDECK_HOME=str(home / "home"),
        QUANTDECK_LOG_LEVEL="error",
        QUANTDECK_PER_MINUTE=f"{{{limits}}}",
        QUANTDECK_DEADLINE_S=f"{{{limits}}}".replace(":0", ":30"),
    )
    with serving([QUANTDECK, "serve", "--http", "--port", "0", "tools-catalog"], env) as address:
        yield address.removesuffix("/mcp")


def _held(answer: Any) -> int:
    """Hold an answer to the envelope; its status."""
    status = int(answer.status_code)
    assert status in CODES, answer.text
    body = answer.json()
    assert answer.headers["x-correlation-id"] == [body["corr_id"]]
    if status == 200:
        assert set(body) == {"error", "data", "corr_id", "timestamp", "tool", "duration_ms", "metadata"}
        assert body["error"] is False
    else:
        assert set(body) == {"error", "code", "message", "corr_id", "details", "timestamp", "tool"}
        assert (body["error"], body["code"]) == (True, CODES[status])
    return status


@bounded
@given(case=OPERATION.as_strategy(generation_mode=GenerationMode.POSITIVE))
def test_what_the_schema_allows_succeeds(url, case):
    assert _held(case.call(base_url=url)) == 200


@bounded
@given(case=OPERATION.as_strategy(generation_mode=GenerationMode.NEGATIVE))
def test_what_the_schema_forbids_is_refused(url, case):
    _held(case.call(base_url=url))
