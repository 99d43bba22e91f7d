"""`scripts/test --live`: real services, and only where that is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTH_", "INFLUXDB_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=50)


def test_what_is_not_set_is_said():
    done = run("--live", "tests/live")
    assert done.returncode == 0, done.stdout
    assert "pyth: not asked, since PYTH_PRO_E2E_TOKEN is not set" in done.stdout
    assert "influxdb: not asked, since INFLUXDB_URL is not set" in done.stdout
    assert " passed" not in done.stdout


@pytest.mark.parametrize("named", [[], ["tests/live"], ["tests/live/test_pyth.py"]], ids=str)
def test_without_the_word_nobody_is_asked(named):
    done = run("--collect-only", *(named or ["tests/live", "tests/test_live.py"]))
    assert "tests/live/" not in done.stdout


def test_the_script_hands_the_environment_on():
    text = (ROOT / "scripts" / "test").read_text()
    assert text.index("--live -p") < text.index("unset ")
