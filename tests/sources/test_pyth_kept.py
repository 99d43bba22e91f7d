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


async def test_of_many_keys_those_that_were_used_last_are_kept():
    kept, asked = Kept[str](300, clock=Ticks()), list[str]()

    def loading(key: str):
        async def load() -> str:
            asked.append(key)
            return key

        return load

    for number in range(10):
        await kept.get(f"{number}", loading(f"{number}"))
    await kept.get("0", loading("0"))
    await kept.get("10", loading("10"))
    asked.clear()
    for key in ("0", "10", "1"):
        await kept.get(key, loading(key))
    assert asked == ["1"]
