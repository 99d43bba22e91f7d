"""The pages of docs/how-to, done as they are written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.pages import FOLDER, blocks
from tests.support.program import quantdeck
from tests.support.tree import Tree

SHOWN = {
    "add-a-tool": ['"parameters":{"fast":13,"signalPeriod":8,"slow":27}', "`strategy_id is required`"],
    "add-an-adapter": ["QUANTDECK_STATE begins with tea:; it may begin with embedded:, redis:, rediss:, memory:"],
    "add-a-dialect": [],
    "bring-bars": [
        "--tz",
        '"open":84010.5,"high":84600.0,"low":83950.0,"close":84550.0,"volume":63.75',
        "no 1m can be made",
    ],
    "be-told-of-crossings": [
        '"price":344.47',
        '"bb_breakout_dn":true',
        '"next_open":"Tomorrow 9:30 AM ET"',
        "chart-signals://alerts/",
    ],
    "bring-a-portfolio": ["positions: 1 added", '"max_size":0.01627906976744186', "positions: 1 as they were"],
    "write-events": [
        '"strategy":"SMA_CROSS","parameters":{"fast":10,"slow":30}',
        '"status":"complete","eventCount":9',
    ],
    "add-a-server": ['"now":"2026-06-01T12:00:00Z","stands_still":true'],
}
"""What each page says its commands show."""

STAGES = "observe contain_errors deadline authorize validate run_once cache handle"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", SHOWN)
def test_what_a_page_says_can_be_done_as_written(tmp_path, page):
    tree = Tree(tmp_path)
    heard = "".join([tree.follow(block) for block in blocks(page)])
    text = (FOLDER / f"{page}.md").read_text()
    for shown in SHOWN[page]:
        assert (shown in text, shown.strip("`") in heard) == (True, True), f"{shown} is not in\n{heard}"
    written = " ".join({path for path in tree.written if path.endswith(".py")})
    if written:
        tree.run(f"ruff check {written} && ruff format --check {written} && mypy {written}")


def test_every_page_is_done():
    assert {path.stem for path in FOLDER.glob("*.md")} == {*SHOWN, "follow-a-call", "collect-bars"}


def test_the_program_that_follows_a_call_prints_the_stages_that_its_page_names(tmp_path):
    program = next(block.text for block in blocks("follow-a-call") if block.language == "python")
    assert quantdeck("demo", home=tmp_path).returncode == 0
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={"QUANTDECK_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    entered = [line.split()[1] for line in told.splitlines() if line.startswith("->")]
    stages = STAGES.split()
    assert STAGES in (FOLDER / "follow-a-call.md").read_text()
    assert entered == [*stages, *stages[: stages.index("cache") + 1]]
