"""A server is a value, and offers nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from quantdeck.core.contract import Contract, Policy
from quantdeck.core.errors import DeclarationError
from quantdeck.core.server import Prompt, Resource, ResourceTemplate, Server
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.declaring import read
from quantdeck.transports.merging import merged


def tool(name: str) -> Contract:
    async def handler() -> dict[str, Any]:
        """Do."""
        return {}

    return read(handler, dialect=catalog, policy=Policy(), name=name)


def text(name: str) -> Contract:
    async def handler() -> str:
        """Read."""
        return ""

    return read(handler, dialect=catalog, policy=Policy(), name=name, is_tool=False)


async def background(app: Any) -> None:
    del app


A = Server(
    name="a", purpose="First", instructions="Ask a.", tools=(tool("one"),), prompts=(Prompt(render=text("p")),),
    resources=(Resource(uri="a://x", read=text("x")),), background=(background,),
)  # fmt: skip
B = Server(
    name="b", purpose="Second", instructions="", tools=(tool("two.three"),),
    templates=(ResourceTemplate(uri_template="b://{y}", read=text("y")),),
)  # fmt: skip


@pytest.mark.parametrize(
    "offers, repeated",
    [
        ({"tools": (tool("one"), tool("one"))}, "one"),
        ({"tools": (tool("one.two"), tool("one_two"))}, "one_two"),
        ({"prompts": (Prompt(render=text("p")), Prompt(render=text("p")))}, "prompt p"),
        ({"resources": (Resource(uri="a://x", read=text("x")), Resource(uri="a://x", read=text("z")))}, "a://x"),
        (
            {
                "templates": (
                    ResourceTemplate(uri_template="a://{x}", read=text("x")),
                    ResourceTemplate(uri_template="a://{x}", read=text("z")),
                )
            },
            r"a://\{x\}",
        ),
    ],
)
def test_a_name_is_offered_once(offers, repeated):
    with pytest.raises(DeclarationError, match=f"desk offers {repeated} more than once"):
        Server(name="desk", purpose="…", **offers)


def test_a_tool_and_a_prompt_may_share_a_name():
    Server(name="desk", purpose="…", tools=(tool("one"),), prompts=(Prompt(render=text("one")),))


def test_everything_that_runs_through_the_pipeline_is_a_contract_of_its_server():
    assert [contract.name for contract in (*A.contracts, *B.contracts)] == ["one", "x", "p", "two.three", "y"]


def test_servers_are_merged_into_one_that_offers_all_of_theirs():
    both = merged((A, B))
    assert both.contracts == (A.tools[0], B.tools[0], *A.contracts[1:2], *B.contracts[1:], *A.contracts[2:])
    assert (both.name, both.purpose, both.instructions) == ("quantdeck", "First; Second", "a: Ask a.")
    assert both.background == ()  # an endpoint offers; the process runs each server's tasks once, however many offer it


def test_a_single_server_stays_itself():
    assert merged((A,)) is A


def test_servers_that_share_a_name_cannot_be_merged():
    with pytest.raises(DeclarationError, match="one, "):
        merged((A, A))


def test_an_offer_cannot_be_changed():
    with pytest.raises(AttributeError):
        A.name = "other"  # type: ignore[misc]
