"""Tools that answer at once: each kind of content, failures, progress, logs, changed lists."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged
from pydantic import Field

from quantdeck.core.call import Progress
from quantdeck.core.contract import Contract
from quantdeck.core.errors import ErrorCode
from tests.conformance.fixture_dialect import MISSING_CAPABILITY, Client, Listeners, Result, fixture, text

__all__ = ["IMAGE", "TOOLS"]

INTENDED = ErrorCode("INTENDED", "It was asked to fail")

IMAGE = {
    "type": "image",
    "mimeType": "image/png",
    "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==",
}
AUDIO = {
    "type": "audio",
    "mimeType": "audio/wav",
    "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=",
}


@fixture.tool()
async def test_simple_text() -> Result:
    """Answer text"""
    return text("This is a simple text response for testing.")


@fixture.tool()
async def test_image_content() -> Result:
    """Answer an image"""
    return {"content": [IMAGE]}


@fixture.tool()
async def test_audio_content() -> Result:
    """Answer a sound"""
    return {"content": [AUDIO]}


@fixture.tool()
async def test_embedded_resource() -> Result:
    """Answer a resource"""
    held = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource."}
    return {"content": [{"type": "resource", "resource": held}]}


@fixture.tool()
async def test_multiple_content_types() -> Result:
    """Answer text, an image and a resource"""
    held = {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":"data"}'}
    words = {"type": "text", "text": "Multiple content types test:"}
    return {"content": [words, IMAGE, {"type": "resource", "resource": held}]}


@fixture.tool(errors=(INTENDED,))
async def test_error_handling() -> Result:
    """Fail"""
    raise INTENDED("This tool intentionally returns an error for testing")


@fixture.tool(errors=(MISSING_CAPABILITY,))
async def test_missing_capability(client: Client) -> Result:
    """Refuse a client that cannot sample"""
    if not client.can("sampling"):
        raise MISSING_CAPABILITY("This tool needs a client that can sample", requiredCapabilities={"sampling": {}})
    return text("The client can sample.")


@fixture.tool()
async def test_tool_with_progress(progress: Progress) -> Result:
    """Tell how far it has come"""
    for done in (0, 50, 100):
        await progress(done, 100, f"Completed step {done} of 100")
    return text("Done.")


async def _log(client: Client) -> Result:
    for sentence in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await client.log(sentence)
    return text("Logged.")


@fixture.tool(asks=True)
async def test_tool_with_logging(client: Client) -> Result:
    """Log three lines"""
    return await _log(client)


@fixture.tool(asks=True)
async def test_logging_tool(client: Client) -> Result:
    """Log three lines, if they are wanted"""
    return await _log(client)


@fixture.tool()
async def test_trigger_tool_change(listeners: Listeners) -> Result:
    """Say that the list of tools has changed"""
    await listeners.tell(ToolsListChanged())
    return text("Told.")


@fixture.tool()
async def test_trigger_prompt_change(listeners: Listeners) -> Result:
    """Say that the list of prompts has changed"""
    await listeners.tell(PromptsListChanged())
    return text("Told.")


Region = Annotated[str, Field(description="Where", json_schema_extra={"x-mcp-header": "Region"})]


@fixture.tool()
async def mirrored(region: Region = "nowhere") -> Result:
    """Take an argument that is mirrored in a header"""
    return text(f"region={region}")


@fixture.tool()
async def json_schema_2020_12_tool() -> Result:
    """Publish a schema of every kind of keyword"""
    return text("Whatever the arguments.")


class _Rich(Contract):
    """A contract whose published schema was written by hand: ours are read from parameters and never so rich."""

    input_schema: dict[str, Any] = {  # noqa: RUF012
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }


def _rich(contract: Contract) -> Contract:
    return _Rich(**{f.name: getattr(contract, f.name) for f in dataclasses.fields(contract)})


TOOLS = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_missing_capability,
    test_tool_with_progress,
    test_tool_with_logging,
    test_logging_tool,
    test_trigger_tool_change,
    test_trigger_prompt_change,
    mirrored,
    _rich(json_schema_2020_12_tool),
)
