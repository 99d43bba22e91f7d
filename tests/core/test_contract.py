"""What a contract says of a tool, read from its function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, NotRequired

import orjson
import pytest
from pydantic import Field
from typing_extensions import TypedDict

from quantdeck import listing
from quantdeck.core.call import Caller, Progress
from quantdeck.core.clock import Now
from quantdeck.core.contract import Contract, Policy
from quantdeck.core.dialect import Dialect
from quantdeck.dialects.backtest_events import backtest_events
from quantdeck.dialects.catalog import catalog
from quantdeck.dialects.declaring import read
from quantdeck.dialects.tradestream import Clamp, Offset, Page, tradestream
from tests.support.runtime import Desk, Notes, Program, body


class Side(StrEnum):
    BUY = "buy"
    SELL = "sell"


class Order(TypedDict):
    side: Literal["buy", "sell"]
    size: Annotated[float, Field(gt=0)]
    note: NotRequired[str]


@dataclass(frozen=True)
class Filled:
    """A docstring that is not the tool's."""

    order: Order
    price: float | None
    title: str
    by_side: dict[Side, int]
    rest: dict[str, Any]


@tradestream.tool(errors=(), cache_s=5)
async def fill(
    desk: Desk,
    notes: Notes,
    now: Now,
    caller: Caller,
    progress: Progress,
    order: Annotated[Order, Field(description="What to fill")],
    from_: Annotated[int, Field(description="Start")],
    limit: Annotated[int, Clamp(1, 100), Field(description="How many")] = 5,
    label: Annotated[str | None, Field(description="A label")] = None,
    venue: Annotated[Literal["a", "b"] | None, Field(description="A venue")] = None,
    ids: Annotated[list[int] | None, Field(description="Numbers")] = None,
    offset: Annotated[Offset, Field(description="How many to skip")] = 0,
) -> Filled:
    """Fill an order

    on some venue."""
    del desk, notes, now, caller, progress, from_, label, venue, ids, offset
    return Filled(order, None, str(limit), {Side.BUY: limit}, {})


def keys_in(schema: Any) -> set[str]:
    """Every keyword of a schema, names of properties left out."""
    if isinstance(schema, list):
        return set().union(*map(keys_in, schema))
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for key, held in schema.items():
        found |= set().union(*map(keys_in, held.values())) if key == "properties" else keys_in(held)
    return found


def test_injected_parameters_never_reach_the_wire():
    assert list(fill.input_schema["properties"]) == [
        "order", "from", "limit", "label", "venue", "ids", "offset", "force_refresh",
    ]  # fmt: skip
    assert set(fill.injected) == {"desk", "notes", "now", "caller", "progress"}


async def test_an_injected_parameter_cannot_be_given_by_the_caller():
    arguments = {"order": {"side": "buy", "size": 1}, "from": 1}
    for name in fill.injected:
        refused = body(await Program().call(fill, {**arguments, name: "mine"}))
        assert refused["error"]["code"] == "INVALID_PARAMETER"


def test_the_first_source_asked_for_is_the_one_reported():
    assert fill.sources == (Desk, Notes)


def test_schemas_hold_no_titles_no_references_and_no_discriminators():
    for schema in (fill.input_schema, fill.output_schema):
        assert keys_in(schema).isdisjoint({"title", "$ref", "$defs", "discriminator"}), schema


def test_a_property_may_be_called_title():
    assert fill.output_schema["properties"]["data"]["properties"]["title"] == {"type": "string"}


def test_what_may_be_left_out_has_no_null_branch_and_no_null_default():
    properties = fill.input_schema["properties"]
    assert properties["label"] == {"type": "string", "description": "A label"}
    assert properties["venue"] == {"enum": ["a", "b"], "type": "string", "description": "A venue"}
    assert properties["ids"] == {"items": {"type": "integer"}, "type": "array", "description": "Numbers"}
    assert b"null" not in orjson.dumps(fill.input_schema)


def test_a_result_that_may_be_null_says_so_in_its_type():
    assert fill.output_schema["properties"]["data"]["properties"]["price"] == {"type": ["number", "null"]}


def test_descriptions_and_defaults_are_published():
    properties = fill.input_schema["properties"]
    assert {name for name, schema in properties.items() if not schema.get("description")} == set()
    assert properties["limit"]["default"] == 5
    assert properties["force_refresh"] == {
        "type": "boolean", "default": False, "description": "Bypass cache and fetch fresh data",
    }  # fmt: skip
    assert "default" not in properties["from"]


def test_the_outermost_description_wins():
    assert fill.input_schema["properties"]["offset"]["description"] == "How many to skip"


def test_required_is_what_has_no_default():
    assert fill.input_schema["required"] == ["order", "from"]


def test_unknown_arguments_are_refused_in_the_published_schema_too():
    assert fill.input_schema["additionalProperties"] is False


def test_enumerations_are_written_out_wherever_they_stand():
    data = fill.output_schema["properties"]["data"]["properties"]
    assert data["by_side"]["propertyNames"] == {"type": "string", "enum": ["buy", "sell"]}
    assert data["order"]["properties"]["side"] == {"enum": ["buy", "sell"], "type": "string"}


def test_the_docstring_is_the_description():
    assert fill.description == "Fill an order\n\non some venue."


def test_a_schema_reads_type_first():
    assert list(fill.input_schema)[:3] == ["type", "properties", "required"]


def test_clamp_publishes_both_bounds():
    limit = fill.input_schema["properties"]["limit"]
    assert (limit["type"], limit["minimum"], limit["maximum"]) == ("integer", 1, 100)


@pytest.mark.parametrize("given, used", [(1, 1), (7, 7), (100, 100), (101, 100), (10**15, 100), (9.0, 9)])
async def test_clamp_cuts_what_is_above_and_the_tool_echoes_it(given, used):
    answer = body(await Program().call(fill, {"order": {"side": "buy", "size": 1}, "from": 1, "limit": given}))
    assert answer["data"]["title"] == str(used)


@pytest.mark.parametrize("given", [0, -1, 1.5, "7", True])
async def test_clamp_refuses_what_is_below_or_no_integer(given):
    answer = await Program().call(fill, {"order": {"side": "buy", "size": 1}, "from": 1, "limit": given})
    assert answer.code == "INVALID_PARAMETER"


async def test_a_trailing_underscore_is_not_on_the_wire():
    good = {"order": {"side": "buy", "size": 1}}
    assert not (await Program().call(fill, {**good, "from": 1})).is_error
    assert (await Program().call(fill, {**good, "from_": 1})).is_error


async def test_camel_case_is_the_only_spelling_where_the_spec_has_it():
    @backtest_events.tool()
    async def page(
        page_size: Annotated[int, Field(description="How many")] = 10,
        from_time_: Annotated[str, Field(description="When")] = "",
    ) -> dict[str, Any]:
        """Page."""
        return {"size": page_size, "from": from_time_}

    assert list(page.input_schema["properties"]) == ["pageSize", "fromTime"]
    assert body(await Program().call(page, {"pageSize": 3})) == {"size": 3, "from": ""}
    assert (await Program().call(page, {"page_size": 3})).is_error


def test_a_dotted_name_is_listed_with_underscores():
    @catalog.tool("risk.limits.check", deadline_ms=500, p95_ms=200, per_minute=10)
    async def check() -> dict[str, Any]:
        """Check."""
        return {}

    assert (check.name, check.listed, listing.title(check)) == (
        "risk.limits.check",
        "risk_limits_check",
        "Risk limits check",
    )


def test_a_generic_page_publishes_its_items():
    @tradestream.tool(errors=())
    async def orders() -> Page[Order]:
        """Orders."""
        return Page.of([], 0, 1, 0)

    page = orders.output_schema["properties"]["data"]
    assert page["required"] == ["items", "pagination"]
    assert page["properties"]["items"]["items"]["required"] == ["side", "size"]
    assert page["properties"]["pagination"]["required"] == ["offset", "limit", "total", "has_more"]


def test_a_union_of_objects_is_an_object_with_branches():
    @backtest_events.tool()
    async def either() -> Order | dict[str, int]:
        """One or the other."""
        return {}

    assert either.output_schema["type"] == "object"
    assert len(either.output_schema["oneOf"]) == 2


@pytest.mark.parametrize(
    "policy, hints",
    [
        (Policy(), (True, False, True, False)),
        (Policy(effect=True), (False, False, False, False)),
        (Policy(effect=True, destructive=True, idempotent=True), (False, True, True, False)),
        (Policy(open_world=True), (True, False, True, True)),
    ],
)
def test_the_hints_follow_from_the_policy(policy, hints):
    async def tool() -> dict[str, Any]:
        """Do."""
        return {}

    names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    contract = read(tool, dialect=tradestream, policy=policy)
    assert listing.hints(contract) == dict(zip(names, hints, strict=True))


def test_only_a_cached_tool_of_the_first_spec_takes_force_refresh():
    @tradestream.tool(errors=())
    async def plain() -> dict[str, Any]:
        """Plain."""
        return {}

    assert plain.input_schema["properties"] == {}


def test_a_dialect_is_needed_only_for_what_it_decides():
    async def tool(two_words: Annotated[int, Field(description="A number")]) -> dict[str, Any]:
        """Do."""
        return {"n": two_words}

    class Plain(Dialect):
        name = "plain"

    contract: Contract = read(tool, dialect=Plain(), policy=Policy())
    assert list(contract.input_schema["properties"]) == ["two_words"]
    assert contract.may_answer == frozenset()
