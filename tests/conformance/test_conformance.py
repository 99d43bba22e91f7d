"""The official conformance suite: both of its frozen sets, with no failure that is expected."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import LISTED, environment, package, run_node
from tests.support.serving import QUANTDECK, make_demo, serving

pytestmark = [pytest.mark.services, pytest.mark.timeout(400)]  # the first run installs the suite

SUITE = "@modelcontextprotocol/conformance"
SETS = ("2025-11-25", "2026-07-28")

NEEDS_NO_FIXTURE = {
    "2025-11-25": {
        "server-initialize",
        "ping",
        "tools-list",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
        "server-session-lifecycle",
    },
    "2026-07-28": {
        "tools-list",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
        "http-header-validation",
        "input-required-result-unsupported-methods",
    },
}
"""What a server that has nothing but tools must pass as well."""

NEEDS_A_FIXTURE = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
"""The checks of `server-stateless` that call the suite's own tools."""

NOT_OFFERED = "tasks-"
"""An extension that the SDK does not have; the suite never counts it."""


@dataclass(frozen=True)
class Run:
    """What one set of scenarios came to."""

    status: int
    said: str
    checks: dict[str, list[dict[str, Any]]]

    def failures(self, *scenarios: str) -> dict[str, str]:
        """The checks of these scenarios that did not pass, and why."""
        return {
            f"{scenario}: {check['id']}": str(check.get("errorMessage") or check["description"])
            for scenario in scenarios
            for check in self.checks[scenario]
            if check["status"] == "FAILURE"
        }

    def passed(self) -> set[str]:
        return {
            name
            for name, checks in self.checks.items()
            if not self.failures(name) and any(check["status"] == "SUCCESS" for check in checks)
        }


Check = Callable[[str], Run]


def scored(revision: str) -> set[str]:
    """The scenarios that a server must pass, by the suite's own list."""
    listed = package(SUITE, "requirements", f"{revision}.yaml").read_text()
    section = re.search(r"^server:\n((?:  - \S+\n)+)", listed, re.MULTILINE)
    assert section is not None
    return set(re.findall(r"- (\S+)", section[1]))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conformance")


def suite_against(url: str, home: Path) -> Check:
    program = package(SUITE, "dist", "index.js")
    home.mkdir()

    @cache
    def check(revision: str) -> Run:
        out = home / revision
        arguments = ("server", "--url", url, "--requirements", revision, "-o", str(out))
        ended = run_node(program, *arguments, env=environment(home), cwd=home, patience_s=90)
        folders = {re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", folder.name): folder for folder in out.iterdir()}
        checks = {name: json.loads((folder / "checks.json").read_text()) for name, folder in folders.items()}
        return Run(ended.returncode, ended.stdout[-4000:] + ended.stderr[-2000:], checks)

    return check


@pytest.fixture(scope="module")
def fixture_server(home: Path) -> Iterator[Check]:
    package(SUITE)
    command = [sys.executable, "-m", "tests.conformance.fixture_server", str(home / "empty")]
    with serving(command, environment(home)) as url:
        yield suite_against(url, home / "fixture")


@pytest.fixture(scope="module")
def real_server(home: Path) -> Iterator[Check]:
    package(SUITE)
    with serving([QUANTDECK, "serve", "--http", "--port", "0", "strategy-mcp"], make_demo(home)) as url:
        yield suite_against(url, home / "real")


@pytest.mark.parametrize("revision", SETS)
def test_every_scenario_that_counts_passes(fixture_server: Check, revision: str):
    run = fixture_server(revision)
    required = scored(revision)
    assert run.failures(*required & run.checks.keys()) == {}
    assert required - run.passed() == set()
    assert run.status == 0, run.said
    # One of the uncounted ones only warns, and counts as neither: the SDK's streams cannot be resumed.
    failed = {name for name in run.checks if run.failures(name)}
    assert {name for name in failed if not name.startswith(NOT_OFFERED)} == set()


@pytest.mark.parametrize("revision", SETS)
def test_a_real_server_passes_what_needs_no_fixture(real_server: Check, revision: str):
    run = real_server(revision)
    assert run.failures(*NEEDS_NO_FIXTURE[revision]) == {}
    assert NEEDS_NO_FIXTURE[revision] - run.passed() == set()


def test_a_real_server_is_stateless_where_the_suite_can_tell(real_server: Check):
    checks = real_server("2026-07-28").checks["server-stateless"]
    assert {check["id"] for check in checks if check["status"] == "FAILURE"} == NEEDS_A_FIXTURE


def test_the_lock_names_no_registry():
    lock = json.loads((LISTED / "package-lock.json").read_text())
    assert [name for name, entry in lock["packages"].items() if "resolved" in entry] == []
