"""What is written from the program says what the program is."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from docs.generator.settings_page import settings
from docs.generator.tool_pages import SAMPLES, page
from quantdeck.core.server import Server
from quantdeck.demo.world import World
from quantdeck.dialects.backtest_events import backtest_events

ROOT = Path(__file__).parents[1]


def test_generated_files_are_up_to_date():
    ran = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_env_example_lists_exactly_what_is_read():
    listed = re.findall(r"^([A-Z][A-Z0-9_]*)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    read = [name for setting in settings() for name in setting.names]
    assert sorted(listed) == sorted(read)


def test_every_name_in_env_example_is_explained():
    lines = (ROOT / ".env.example").read_text().splitlines()
    for above, line in pairwise(lines):
        if re.match(r"[A-Z]", line):
            assert above.startswith("#"), f"{line} has no comment above it"


def test_no_table_of_a_generated_page_is_without_rows():
    @backtest_events.tool(errors=())
    async def shrug() -> dict[str, Any]:
        """Say anything"""
        return {}

    written = page(Server(name="anything", purpose="Tools that promise little", tools=(shrug,)))
    rows = [line.startswith("|") for line in written.splitlines()]
    heads = [number for number, line in enumerate(written.splitlines()) if line.startswith("| --- |")]
    assert heads
    assert all(rows[number + 1] for number in heads), written


def test_the_examples_ask_for_a_strategy_of_the_demo_world():
    strategies = {row["impl_id"]: row["symbol"] for row in World(7).implementations()}
    assert strategies[SAMPLES["strategy_id"]] == SAMPLES["symbol"]
