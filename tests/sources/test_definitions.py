"""Specs by their names, as what can be run."""

from __future__ import annotations

import pytest

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotInPast
from quantdeck.sources.sql.definitions import Definitions
from tests.support.desk import LATER, NOON, add_spec
from tests.support.leaks import Reads, assert_sealed
from tests.support.specs import spec

PARTS = {name: part for name, part in spec().items() if name != "name"}
READS: Reads = {"named": lambda source, as_of: source.named("LATE", as_of=as_of)}
AT_NOON, AFTER = (Now.of(at, fixed=True) for at in (NOON, LATER))


@pytest.fixture
def definitions(desk):
    return Definitions(desk)


async def test_a_spec_is_found_by_its_name(desk, definitions):
    await add_spec(desk, "SMA_RSI", **PARTS)
    found = await definitions.named("SMA_RSI", as_of=AT_NOON)
    assert found is not None
    assert found.stored() == PARTS
    assert await definitions.named("ANOTHER", as_of=AT_NOON) is None


async def test_what_is_not_active_or_cannot_be_run_is_not_found(desk, definitions):
    await add_spec(desk, "RETIRED", is_active=False, **PARTS)
    await add_spec(desk, "EMPTY", **{name: [] for name in PARTS})
    for name in ("RETIRED", "EMPTY"):
        assert await definitions.named(name, as_of=AT_NOON) is None


async def test_a_spec_that_was_changed_later_is_not_shown_as_it_is_now(desk, definitions):
    await add_spec(desk, "SMA_RSI", updated_at=LATER, **PARTS)
    with pytest.raises(NotInPast, match="The spec SMA_RSI was changed after the fixed clock"):
        await definitions.named("SMA_RSI", as_of=AT_NOON)
    assert await definitions.named("SMA_RSI", as_of=AFTER) is not None


async def test_nothing_that_became_known_later_is_in_any_answer(desk, definitions):
    async def write_later() -> None:
        await add_spec(desk, "LATE", created_at=LATER, updated_at=LATER, **PARTS)

    await assert_sealed(definitions, READS, write_later, at=NOON, later=LATER)
