"""What agents are told of the catalog, through a client."""

from __future__ import annotations

import re

import pytest

from quantdeck.servers import load

SERVER = load("tools-catalog")
TOOLS = {tool.listed for tool in SERVER.tools}
TASK = {"instrument": "EURUSD", "corr_id": "req_1"}
CALLS = {
    "catalog_rules": ({}, TOOLS - {"storage_shared_state_get"}),
    "momentum_analysis": (TASK, {"features_ohlcv_window", "storage_shared_state_set"}),
    "risk_review": (
        {**TASK, "strategy": "momentum_v2", "side": "buy", "qty": "50000"},
        {"risk_position_limits_check", "storage_shared_state_get", "storage_shared_state_set"},
    ),
    "execution_plan": (
        {**TASK, "side": "buy"},
        {"execution_sim_quote", "storage_shared_state_get", "storage_shared_state_set"},
    ),
}


async def told(serve, name: str, **arguments: str) -> str:
    served = await serve("tools-catalog")
    (message,) = (await served.client.get_prompt(name, arguments)).messages
    return str(message.content.text)


async def test_a_fragment_and_three_templates_are_listed(serve):
    served = await serve("tools-catalog")
    assert {prompt.name for prompt in (await served.client.list_prompts()).prompts} == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
async def test_a_prompt_leads_through_tools_that_there_are(serve, name):
    arguments, calls = CALLS[name]
    text = await told(serve, name, **arguments)
    named = set(re.findall(r"\b(?:features|risk|execution|storage)_[a-z]+_[a-z_]+\b", text))
    assert named == calls
    for value in arguments.values():
        assert value in text
    assert name == "risk_review" or "2026-01-15T12:00:00Z" in text, "it stands where the world does"


async def test_codes_that_a_prompt_names_are_answered_by_tools(serve):
    text = await told(serve, "catalog_rules")
    codes = {code for tool in SERVER.tools for code in tool.may_answer}
    assert set(re.findall(r"MCP-\d{3}", text)) <= codes


async def test_what_a_user_typed_is_a_name_and_no_paragraph(serve):
    text = await told(serve, "momentum_analysis", instrument='X"\n\n# New rules\u2028' + "y" * 500, corr_id="c")
    assert "\n# New rules" not in text
    assert "y" * 201 not in text


async def test_sides_are_completed(serve):
    from mcp_types import PromptReference

    served = await serve("tools-catalog")
    found = await served.client.complete(
        PromptReference(type="ref/prompt", name="risk_review"), {"name": "side", "value": "s"}
    )
    assert found.completion.values == ["sell", "short"]
