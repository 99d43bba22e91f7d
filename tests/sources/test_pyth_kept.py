"""What is kept of what costs megabytes."""

from __future__ import annotations

import pytest

from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.sources.pyth.kept import Kept
from tests.support.clock import Ticks


@pytest.mark.parametrize("kind", [QueryFailed, Unreachable])
async def test_keys_that_fail_fill_nothing_and_take_nobodys_value_away(kind):
    kept, asked = Kept[str](300, clock=Ticks()), list[str]()

    async def good():
        asked.append("good")
        return "value"

    async def bad():
        raise kind("No.", source="pyth")

    for key in ("", "mine"):
        assert await kept.get(key, good) == "value"
    for number in range(50):
        with pytest.raises(kind):
            await kept.get(f"made up {number}", bad)
    assert len(kept) <= 11
    for key in ("", "mine"):
        assert await kept.get(key, good) == "value"
    assert asked == ["good"] * 2
