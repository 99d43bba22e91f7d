"""Tools that ask the client: older clients in the middle of the call, newer ones by an answer that is a question."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from tests.conformance.fixture_dialect import Client, Result, ask, fixture, text

__all__ = ["QUESTIONS", "form", "wanted"]

Words = Annotated[str, Field(description="What to ask")]
KINDS = ["active", "inactive", "pending"]


def form(**properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a form in which everything must be filled in."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def wanted(question: str, **properties: dict[str, Any]) -> Result:
    """A form to fill in, as a question in a result."""
    asked = {"mode": "form", "message": question, "requestedSchema": form(**properties)}
    return {"method": "elicitation/create", "params": asked}


def sampled(prompt: str) -> Result:
    """A text to be written by the client's model, as a question in a result."""
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}}


TEXT = {"type": "string"}
NAME = wanted("What is your name?", name=TEXT)
SURE = wanted("Please confirm", ok={"type": "boolean"})
ROOTS: Result = {"method": "roots/list", "params": {}}


async def _elicit(client: Client, question: str, asked: dict[str, Any]) -> Result:
    said = await client.elicit(question, asked)
    return text(f"Elicitation completed: action={said.action}, content={json.dumps(said.content)}")


@fixture.tool(asks=True)
async def test_sampling(client: Client, prompt: Words) -> Result:
    """Have the client's model answer"""
    said = (await client.sample(prompt)).content
    return text(f"LLM response: {getattr(said, 'text', 'no text')}")


@fixture.tool(asks=True)
async def test_elicitation(client: Client, message: Words) -> Result:
    """Ask the user"""
    return await _elicit(client, message, form(response={**TEXT, "description": "User's response"}))


@fixture.tool(asks=True)
async def test_elicitation_sep1034_defaults(client: Client) -> Result:
    """Ask the user, with a default for everything"""
    asked = form(
        name={**TEXT, "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={**TEXT, "enum": KINDS, "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await _elicit(client, "Please provide user information", asked)


@fixture.tool(asks=True)
async def test_elicitation_sep1330_enums(client: Client) -> Result:
    """Ask the user to choose, in every way there is"""
    titled = [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}]
    plain = {**TEXT, "enum": ["option1", "option2", "option3"]}
    asked = form(
        untitledSingle=plain,
        titledSingle={**TEXT, "oneOf": titled},
        legacyEnum={**TEXT, "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        untitledMulti={"type": "array", "items": plain},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return await _elicit(client, "Please choose", asked)


# Newer clients: the answer is the question, and they call again with what they were told.


def _content(client: Client, key: str, field: str) -> str | None:
    """What a form came back with; None unless it was filled in."""
    said = client.answers.get(key)
    content = said.get("content") if isinstance(said, dict) and said.get("action") == "accept" else None
    return content.get(field) if isinstance(content, dict) else None


@fixture.tool(asks=True)
async def test_streaming_elicitation(client: Client) -> Result:
    """Ask, and say nothing else"""
    return text("Thank you.") if client.answers else ask(user_name=NAME)


@fixture.tool(asks=True)
async def test_input_required_result_elicitation(client: Client) -> Result:
    """Ask for a name"""
    name = _content(client, "user_name", "name")
    return ask(user_name=NAME) if name is None else text(f"Hello, {name}!")


@fixture.tool(asks=True)
async def test_input_required_result_sampling(client: Client) -> Result:
    """Ask the client's model"""
    if "capital_question" not in client.answers:
        return ask(capital_question=sampled("What is the capital of France?"))
    return text(f"The model said: {json.dumps(client.answers['capital_question'])}")


@fixture.tool(asks=True)
async def test_input_required_result_list_roots(client: Client) -> Result:
    """Ask for the client's folders"""
    if "client_roots" not in client.answers:
        return ask(client_roots=ROOTS)
    return text(f"The client's roots: {json.dumps(client.answers['client_roots'])}")


@fixture.tool(asks=True)
async def test_input_required_result_request_state(client: Client) -> Result:
    """Ask, and get back what it gave the client to keep"""
    if client.state is None or "confirm" not in client.answers:
        return ask("asked once", confirm=SURE)
    return text(f"state-ok: {client.state}")


@fixture.tool(asks=True)
async def test_input_required_result_tampered_state(client: Client) -> Result:
    """Ask, and see what the client has done to what it was given to keep"""
    return ask("asked once", confirm=SURE) if client.state is None else text(f"state-ok: {client.state}")


@fixture.tool(asks=True)
async def test_input_required_result_multiple_inputs(client: Client) -> Result:
    """Ask for three things at once"""
    questions = {"user_name": NAME, "greeting": sampled("Generate a greeting"), "client_roots": ROOTS}
    if client.answers.keys() >= questions.keys():
        return text("All three were answered.")
    return ask("asked for three", **questions)


@fixture.tool(asks=True)
async def test_input_required_result_multi_round(client: Client) -> Result:
    """Ask for a name, then for a colour"""
    name = _content(client, "step1", "name")
    color = _content(client, "step2", "color")
    if client.state is not None and color is not None:
        return text(f"{client.state} likes {color}.")
    if client.state is not None and name is not None:
        return ask(name, step2=wanted("Step 2: What is your favorite color?", color=TEXT))
    return ask("nobody yet", step1=wanted("Step 1: What is your name?", name=TEXT))


@fixture.tool(asks=True)
async def test_input_required_result_capabilities(client: Client) -> Result:
    """Ask only what the client can answer"""
    questions = {"sampling": sampled("Say hello"), "elicitation": NAME}
    return ask("asked once", **{kind: asked for kind, asked in questions.items() if client.can(kind)})


QUESTIONS = (
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_streaming_elicitation,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
)
