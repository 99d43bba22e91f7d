"""What the disk says is missing while it is fetched: whoever is killed meanwhile must not take it for done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quantdeck.collectors.alpaca.collector import Collector
from quantdeck.collectors.alpaca.filling import Gap
from quantdeck.collectors.alpaca.owed import Owed
from quantdeck.settings import Settings


async def test_a_gap_stands_on_the_disk_from_before_it_is_filled_until_it_is(tmp_path: Path):
    def on_disk() -> int | None:
        return Owed(tmp_path / "alpaca.json", "here").since("AAPL")

    store: Any = None  # nothing is written here
    collector = Collector(Settings().alpaca, store, Owed(tmp_path / "alpaca.json", "here"), days=1)
    gap = Gap("AAPL", 600, 1200)
    with collector.owing([gap]):
        assert on_disk() == 600
        gap.start_s = 900
        with pytest.raises(ConnectionError), collector.owing([gap]):
            raise ConnectionError
        assert on_disk() == 900
        gap.start_s = gap.end_s
    assert on_disk() is None
    assert Owed(tmp_path / "alpaca.json", "elsewhere").since("AAPL") is None
    await collector.close()
