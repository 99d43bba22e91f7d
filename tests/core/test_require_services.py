"""A service that cannot be started is a skip with its reason, and with --require-services a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
TESTS = """
import pytest
from tests.support.services import missing

@pytest.mark.services
def test_needs_a_service():
    pytest.skip("no PostgreSQL here")

@pytest.fixture
def server():
    pytest.skip("no Redis here")

@pytest.mark.services
def test_needs_another(server):
    raise AssertionError

def test_forgot_its_mark():
    raise missing("no Node here")

@pytest.mark.services
def test_has_its_service():
    pass

@pytest.mark.services
@pytest.mark.xfail(raises=AssertionError)
def test_is_known_to_fail():
    raise AssertionError

def test_is_skipped_for_another_reason():
    pytest.skip("not on this system")
"""


def run(folder: Path, *options: str) -> str:
    (folder / "conftest.py").write_text((FOLDER / "conftest.py").read_text())
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = services: …\n")
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:randomly", "-p", "no:cacheprovider", *options, "."]
    env = {**os.environ, "PYTHONPATH": str(FOLDER.parent)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False).stdout


def test_without_the_option_it_is_a_skip_with_its_reason(tmp_path):
    told = run(tmp_path)
    assert "1 passed, 4 skipped, 1 xfailed" in told
    assert "no PostgreSQL here" in told


@pytest.mark.parametrize("reason", ["no PostgreSQL here", "no Redis here", "a service is missing: no Node here"])
def test_with_the_option_it_is_a_failure_with_the_same_reason(tmp_path, reason):
    told = run(tmp_path, "--require-services")
    assert f"--require-services forbids the skip: {reason}" in told
    assert "2 failed, 1 passed, 1 skipped, 1 xfailed, 1 error" in told
