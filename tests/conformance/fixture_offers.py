"""What else the suite asks for by name: resources, a template, prompts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from quantdeck.core.server import Prompt, Resource, ResourceTemplate
from tests.conformance.fixture_dialect import Client, Result, ask, fixture
from tests.conformance.fixture_questions import wanted
from tests.conformance.fixture_tools import IMAGE

__all__ = ["PROMPTS", "RESOURCES", "TEMPLATES"]

Messages = list[dict[str, Any]]
Argument = Annotated[str, Field(description="Any text")]


def _user(content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _says(sentence: str) -> dict[str, Any]:
    return _user({"type": "text", "text": sentence})


@fixture.readable
async def static_text() -> str:
    """Text"""
    return "This is the content of the static text resource."


@fixture.readable
async def static_binary() -> str:
    """An image"""
    return IMAGE["data"]


@fixture.readable
async def watched() -> str:
    """Text that one may subscribe to"""
    return "Watched resource content"


@fixture.readable
async def numbered(id: Annotated[str, Field(description="Which one")]) -> list[str]:  # noqa: A002 - the suite's name
    """Data by its id"""
    return ["Data for ID", id]


@fixture.readable
async def test_simple_prompt() -> str:
    """A prompt that takes nothing"""
    return "This is a simple prompt for testing."


@fixture.readable
async def test_prompt_with_arguments(arg1: Argument, arg2: Argument) -> str:
    """A prompt that repeats its arguments"""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@fixture.readable
async def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, Field(description="What to embed")],  # noqa: N803 - the suite's name
) -> Messages:
    """A prompt with a resource in it"""
    held = {"uri": resourceUri, "mimeType": "text/plain", "text": "Embedded resource content for testing."}
    return [_user({"type": "resource", "resource": held}), _says("Please process the embedded resource above.")]


@fixture.readable
async def test_prompt_with_image() -> Messages:
    """A prompt with an image in it"""
    return [_user(IMAGE), _says("Please analyze the image above.")]


@fixture.readable
async def test_input_required_result_prompt(client: Client) -> str | Result:
    """A prompt that has to ask first"""
    if "user_context" not in client.answers:
        return ask(user_context=wanted("What context should the prompt use?", context={"type": "string"}))
    return f"Use this context: {client.answers['user_context']}"


async def _complete(begun: str) -> list[str]:
    return [value for value in ("paris", "park", "party") if value.startswith(begun)]


RESOURCES = (
    Resource(uri="test://static-text", read=static_text),
    Resource(uri="test://static-binary", read=static_binary, mime_type="image/png", binary=True),
    Resource(uri="test://watched-resource", read=watched),
)
TEMPLATES = (ResourceTemplate(uri_template="test://template/{id}/data", read=numbered, mime_type="application/json"),)
PROMPTS = (
    Prompt(render=test_simple_prompt),
    Prompt(render=test_prompt_with_arguments, complete={"arg1": _complete, "arg2": _complete}),
    Prompt(render=test_prompt_with_embedded_resource),
    Prompt(render=test_prompt_with_image),
    Prompt(render=test_input_required_result_prompt),
)
