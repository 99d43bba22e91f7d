"""What is written of the program, by hand or from it, says what the program is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from docs.generator.settings_page import settings
from docs.generator.tool_pages import SAMPLES, page
from quantdeck.commands.client_config import _program, _render
from quantdeck.core.server import Server
from quantdeck.demo.world import World
from quantdeck.dialects.backtest_events import backtest_events
from quantdeck.servers import NAMES
from tests.support.pages import FOLDER, blocks

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "quantdeck"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
MADE = {block.path for page in FOLDER.glob("*.md") for block in blocks(page.stem)}
"""Files that the reader of a how-to page makes or changes."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


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


def spoken_of(text: str) -> list[str]:
    """What stands between backticks, outside of blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


@each_page
def test_every_file_that_a_page_names_is_there(page):
    text = page.read_text()
    links = {link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link}
    paths = {word for word in spoken_of(text) if re.fullmatch(r"\w[\w-]*(/[\w.-]+)+\.(py|md|toml|json|sql)", word)}
    places = (page.parent, ROOT, SOURCE, ROOT / "docs")
    gone = {path for path in links | paths if not any((place / path).exists() for place in places)}
    assert gone - MADE == set()


@each_page
def test_every_name_that_a_page_gives_with_its_module_is_there(page):
    for word in spoken_of(page.read_text()):
        named = re.fullmatch(r"((\w+)(?:/\w+)+)\.(?!py$)([a-zA-Z_]\w*(?:\.\w+)*)", word)
        if named and (SOURCE / named[2]).is_dir():
            attrgetter(named[3])(import_module(f"quantdeck.{named[1].replace('/', '.')}"))


def test_the_places_along_a_call_are_where_the_page_says():
    rows = re.findall(r"^\| (`.*?) \|", (FOLDER / "follow-a-call.md").read_text(), re.MULTILINE)
    assert rows
    for row in rows:
        file = SOURCE
        for word in re.findall(r"`([^`]+)`", row):
            if word.endswith(".py"):
                file = next(path for path in (SOURCE / word, file.parent / word) if path.exists())
                continue
            for name in word.split("."):
                there = re.search(rf"\b(def|class) {name}\b|^{name}\b", file.read_text(), re.MULTILINE)
                assert there, f"{word} is not in {file}"


def test_the_hosted_ci_runs_what_anybody_can_run():
    steps = re.findall(r"^ +- run: (\S+)", (ROOT / ".github" / "workflows" / "ci.yml").read_text(), re.MULTILINE)
    assert steps == [".ci/run", "scripts/demo"]
    assert all(os.access(ROOT / step, os.X_OK) for step in steps)


def test_the_readme_says_what_each_server_is_for():
    rows = re.findall(r"^\| `([\w-]+)` \| \w.* \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(NAMES), "give each server its row in the table"


def test_the_readme_prints_what_client_config_does():
    printed = re.findall(r"^```json\n(\{\n.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    home, program = "/home/me/.quantdeck", "/path/to/venv/bin/quantdeck"
    said = [
        json.dumps(_render(client, ("strategy-mcp",), url=None, environment={"QUANTDECK_HOME": home})[1])
        for client in ("opencode", "opencode-v2", "claude")
    ]
    assert [json.loads(block) for block in printed] == [
        json.loads(entry.replace(_program()[0], program)) for entry in said
    ]
