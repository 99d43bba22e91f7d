"""The collector under everything at once. The whole of it, 22 symbols with 10,000 bars each, is in the benchmark."""

from __future__ import annotations

import pytest

from tests.support.alpaca_soak import soak
from tests.support.candle_stores import KINDS

STORES = [name for name, kind in KINDS.items() if "writing" not in kind.lacks]


@pytest.mark.parametrize("kind", [pytest.param(name, marks=KINDS[name].marks) for name in STORES])
async def test_the_store_equals_what_was_sent_whatever_broke_meanwhile(kind, tmp_path):
    place = await KINDS[kind].make(tmp_path / "place")
    told = await soak(place, tmp_path, symbols=6, bars=1000, drops=5)
    assert told.lost == {}
    assert told.most_connected == 1
    assert told.connections >= 6
