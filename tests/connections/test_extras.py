"""An extra that is wanted and not installed is said, not thrown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quantdeck.connections import extras
from quantdeck.core.errors import Unreachable

WITHOUT_DRIVER = (
    "import sys; sys.modules['asyncpg'] = None; from quantdeck.cli import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.mark.parametrize(
    "arguments, status",
    [
        (["doctor"], 1),
        (["call", "get_top_strategies", '{"symbol": "BTC/USD"}'], 1),
        (["migrate"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_missing_driver_is_one_sentence_with_the_command_that_installs_it(tmp_path, arguments, status):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER, *arguments],
        env={"QUANTDECK_HOME": str(tmp_path), "DATABASE_URL": "postgresql://joe@127.0.0.1:1/db"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "pip install 'quantdeck[postgresql]'" in done.stdout + done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)


def test_a_module_of_ours_that_is_missing_is_a_bug_and_says_so():
    with pytest.raises(ModuleNotFoundError):
        extras.load("quantdeck.connections.papyrus", extra="papyrus")


def test_what_is_installed_is_imported():
    assert extras.load("quantdeck.connections.extras", extra="none") is extras


def test_the_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.delitem(sys.modules, "quantdeck.connections.postgresql", raising=False)
    with pytest.raises(Unreachable, match=r"quantdeck\[postgresql\]"):
        extras.load("quantdeck.connections.postgresql", extra="postgresql")
