"""`scripts/test --live`: real services, and only where that is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTH_", "INFLUXDB_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment | environ, capture_output=True, text=True, check=False, timeout=50
    )


def test_what_is_not_set_is_said():
    done = run("--live", "tests/live")
    assert done.returncode == 0, done.stdout
    assert "pyth: not asked, since PYTH_PRO_E2E_TOKEN is not set" in done.stdout
    assert "influxdb: not asked, since INFLUXDB_URL is not set" in done.stdout
    assert " passed" not in done.stdout


def test_a_run_of_all_tests_does_not_know_of_them():
    done = run("--collect-only", "tests/live", "tests/test_live.py")
    assert "tests/test_live.py::" in done.stdout
    assert "tests/live/" not in done.stdout


def test_without_the_word_nobody_is_asked_however_they_are_named():
    done = run("tests/live/test_pyth.py", PYTH_PRO_E2E_TOKEN="set", PYTH_ROUTER_URL="https://127.0.0.1:1")
    assert (done.returncode, "by scripts/test --live only" in done.stdout) == (0, True)
    assert not {" passed", " failed", " error"} & set(done.stdout.splitlines()[-1].split(","))


def test_the_script_asks_them_alone(tmp_path):
    """With a Python that only says how it was called."""
    said = tmp_path / "said"
    (tmp_path / "scripts").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name, text in {
        "scripts/test": (ROOT / "scripts" / "test").read_text(),
        "scripts/setup": "#!/bin/sh\n",
        ".venv/bin/python": f'#!/bin/sh\necho "$@ $PYTH_PRO_E2E_TOKEN" > {said}\n',
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for arguments, told in (("--live -k x", "--live -p no:randomly tests/live -k x token"), ("tests/x", "tests/x ")):
        subprocess.run(
            [tmp_path / "scripts" / "test", *arguments.split()], env={**os.environ, "PYTH_PRO_E2E_TOKEN": "token"},
            check=True,
        )  # fmt: skip
        assert said.read_text() == f"-m pytest {told}\n"
