"""A tool that is declared wrongly fails where it is declared, and the sentence says what to do.

No `from __future__ import annotations` here: these tools are declared inside their tests.
"""

import dataclasses
import sys
import typing
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from quantdeck.core.contract import Contract, Policy
from quantdeck.core.errors import DeclarationError, ErrorCode, Rejects
from quantdeck.dialects.declaring import read
from quantdeck.dialects.tradestream import tradestream

OWN = ErrorCode("OWN", "The tool's own failure", 404)
FOREIGN = ErrorCode("FOREIGN", "Another tool's failure", 404)
NAMED = Annotated[str, Field(description="A name")]


def declared(handler: Callable[..., Any], **more: Any) -> Contract:
    return read(handler, dialect=tradestream, policy=Policy(), **more)


def refusal(handler: Callable[..., Any], **more: Any) -> str:
    with pytest.raises(DeclarationError) as refused:
        declared(handler, **more)
    sentence = str(refused.value)
    assert f"{handler.__module__}.{handler.__name__}" in sentence, "it must say which tool"
    return sentence


class Tree(TypedDict):
    branches: "list[Tree]"


@dataclasses.dataclass
class Link:
    following: Optional["Link"]


class Point(NamedTuple):
    x: float


@dataclasses.dataclass
class Plain:
    n: int


class PlainModel(BaseModel):
    n: int


class OldRow(typing.TypedDict):
    n: int


class Chained(NamedTuple):
    following: Optional["Chained"]


@dataclasses.dataclass
class Holder:
    links: list[Link]


@dataclasses.dataclass
class Unfinished:
    what: "NeverDefined"  # type: ignore[name-defined]  # noqa: F821


async def test_a_code_named_in_the_body_must_be_declared():
    async def greet(name: NAMED) -> dict[str, Any]:
        """Greet."""
        raise OWN(name)

    assert "OWN" in refusal(greet)
    assert "`errors`" in refusal(greet)
    assert declared(greet, errors=(OWN,)).errors == (OWN,)


async def test_a_code_named_in_an_inner_function_must_be_declared_too():
    async def greet(names: Annotated[list[str], Field(description="Names")]) -> dict[str, Any]:
        """Greet."""

        def check(name: str) -> str:
            if not name:
                raise FOREIGN("no name")
            return name

        return {"names": [check(name) for name in names], "later": lambda: OWN("…")}

    assert "FOREIGN" in refusal(greet, errors=(OWN,))
    assert "OWN" in refusal(greet, errors=(FOREIGN,))


async def test_a_code_that_every_tool_of_the_spec_may_answer_needs_no_declaration():
    code = tradestream.invalid

    async def greet(name: Annotated[NAMED, Rejects(code)]) -> dict[str, Any]:
        """Greet."""
        return {"name": name}

    assert declared(greet).errors == ()


async def test_a_parameter_may_only_reject_with_a_declared_code():
    async def greet(name: Annotated[NAMED, Rejects(OWN)]) -> dict[str, Any]:
        """Greet."""
        return {"name": name}

    assert "'name' rejects with OWN" in refusal(greet)
    assert declared(greet, errors=(OWN,)).by_wire["name"].rejects is OWN


async def test_a_parameter_needs_a_description():
    async def greet(name: str) -> dict[str, Any]:
        """Greet."""
        return {"name": name}

    assert "describe 'name'" in refusal(greet)
    assert "Field(description=" in refusal(greet)


async def test_a_parameter_needs_an_annotation():
    async def greet(name) -> dict[str, Any]:
        """Greet."""
        return {"name": name}

    assert "annotate the parameter 'name'" in refusal(greet)


async def test_a_tool_needs_a_docstring():
    async def mute() -> dict[str, Any]:
        return {}

    async def blank() -> dict[str, Any]:
        """ """
        return {}

    assert "docstring" in refusal(mute)
    assert "docstring" in refusal(blank)


async def test_a_tool_needs_a_return_type():
    async def vague(name: NAMED):
        """Do something."""
        return {"name": name}

    assert "return type" in refusal(vague)


async def test_a_tool_is_asynchronous():
    def blocking() -> dict[str, Any]:
        """Block the loop."""
        return {}

    assert "`async def`" in refusal(blocking)


@pytest.mark.parametrize("kind", [Tree, Link, Chained, Holder, list[Tree], dict[str, Link]], ids=str)
async def test_a_type_that_contains_itself_is_refused_as_result_and_as_parameter(kind):
    async def answering() -> dict[str, kind]:  # type: ignore[valid-type]
        """Answer."""
        return {}

    async def asking(what: Annotated[kind, Field(description="What")]) -> dict[str, Any]:  # type: ignore[valid-type]
        """Ask."""
        return {"what": what}

    for sentence in (refusal(answering), refusal(asking)):
        assert "contains itself" in sentence
        assert "flatten it" in sentence


async def test_the_same_type_twice_is_no_recursion():
    @dataclasses.dataclass
    class Leg:
        size: float

    @dataclasses.dataclass
    class Spread:
        near: Leg
        far: Leg

    async def quote() -> Spread:
        """Quote."""
        return Spread(Leg(1), Leg(2))

    near = declared(quote).output_schema["properties"]["data"]["properties"]["near"]
    assert near == {"type": "object", "properties": {"size": {"type": "number"}}, "required": ["size"]}


@pytest.mark.parametrize(
    "root",
    [str, int, float, bool, None, bytes, datetime, Any, list[str], tuple[int, int], set[int], Point,
     dict[str, int] | None, dict[str, int] | str, Annotated[list[int], Field(description="Numbers")]],
    ids=str,
)  # fmt: skip
async def test_a_result_whose_root_is_no_object_is_refused(root):
    async def answer() -> root:  # type: ignore[valid-type]
        """Answer."""

    assert "must return an object" in refusal(answer)


class Row(TypedDict):
    n: int


UNFIT: list[Any] = [(PlainModel, "frozen dataclass"), (Decimal, "float, or str")]
if sys.version_info < (3, 12):
    UNFIT.append((OldRow, "typing_extensions"))


@pytest.mark.parametrize("kind, instead", UNFIT)
def test_a_type_that_cannot_be_kept_is_refused_with_what_to_use(kind, instead):
    async def answer() -> dict[str, kind]:  # type: ignore[valid-type]
        """Answer."""
        return {}

    async def take(given: Annotated[list[kind], Field(description="Given")]) -> dict[str, Any]:  # type: ignore[valid-type]
        """Take."""
        return {}

    assert instead in refusal(answer)
    assert instead in refusal(take)


def test_a_revised_tool_has_a_source_to_tell_its_revision():
    async def answer() -> dict[str, Any]:
        """Answer."""
        return {}

    with pytest.raises(DeclarationError, match="no source"):
        read(answer, dialect=tradestream, policy=Policy(cache_s=1, revised=True))


ROOTS = [
    dict[str, int],
    Plain,
    Row,
    Row | dict[str, Any],
    Annotated[dict[str, int], Field(description="N")],
]


@pytest.mark.parametrize("root", ROOTS, ids=str)
async def test_a_result_whose_root_is_an_object_is_accepted(root):
    async def answer() -> root:  # type: ignore[valid-type]
        """Answer."""

    assert declared(answer).returns == root


async def test_what_is_no_tool_may_return_text():
    async def render() -> str:
        """A prompt."""
        return "text"

    assert declared(render, is_tool=False).returns is str


async def test_an_annotation_that_cannot_be_resolved_is_refused_with_the_fix():
    async def greet(name: "Missing") -> dict[str, Any]:  # type: ignore[name-defined]  # noqa: F821
        """Greet."""
        return {"name": name}

    async def answer() -> dict[str, Unfinished]:
        """Answer."""
        return {}

    assert "Missing" in refusal(greet)
    assert "NeverDefined" in refusal(answer)
    for handler in (greet, answer):
        assert "TYPE_CHECKING" in refusal(handler)
