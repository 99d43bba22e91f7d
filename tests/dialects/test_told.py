"""Arguments of which the tool itself says what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import pytest
from pydantic import Field

from quantdeck.core.call import Call, Caller, Runtime, chain
from quantdeck.core.clock import Clock
from quantdeck.core.contract import Policy
from quantdeck.dialects.declaring import read
from quantdeck.dialects.schemas import Told
from quantdeck.dialects.tradestream import tradestream
from quantdeck.sources.coordination.embedded import Embedded


@dataclass(frozen=True, slots=True)
class Heard:
    names: Any
    note: Any


async def hear(
    count: Annotated[int, Field(description="A number")],
    names: Annotated[Any, Told("array"), Field(description="Names")] = None,
    note: Annotated[Any, Told("string", required=False), Field(description="A note")] = None,
) -> Heard:
    """Hear what was said"""
    return Heard(names, note)


TOOL = read(hear, dialect=tradestream, policy=Policy(), errors=())


def test_the_schema_has_their_types_and_what_is_required():
    assert TOOL.input_schema == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "description": "A number"},
            "names": {"type": "array", "description": "Names"},
            "note": {"type": "string", "description": "A note"},
        },
        "required": ["count", "names"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "said, heard",
    [
        ({}, Heard(None, None)),
        ({"names": None}, Heard(None, None)),
        ({"names": "no list", "note": {"a": [1.5, None]}}, Heard("no list", {"a": [1.5, None]})),
        ({"names": [1, "two"], "note": False}, Heard([1, "two"], False)),
    ],
)
async def test_whatever_was_given_reaches_the_tool(said, heard):
    assert (await called(count=1, **said)).body["data"] == heard


@pytest.mark.parametrize("said", [{}, {"count": "1"}, {"count": 1, "more": 2}])
async def test_its_other_arguments_are_validated_as_ever(said):
    assert (await called(**said)).code == "INVALID_PARAMETER"


async def called(**arguments):
    runtime = Runtime(clock=Clock.parse("wall"), coordination=Embedded(nothing), source=nothing)
    return await chain(TOOL)(Call(contract=TOOL, arguments=arguments, runtime=runtime, caller=Caller("somebody")))


def nothing(*_: object) -> NoReturn:
    raise AssertionError("this tool needs no database")
