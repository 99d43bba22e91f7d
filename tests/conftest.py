"""`--require-services`: where it is given, a service that cannot be had is a failure, not a skip. And the hunt."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import hypothesis
import pytest

from tests.support import hunt
from tests.support.services import MISSING

# Its deadline is a wall-clock assertion: a busy machine fails it.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(hunt, "the hunt for tokens")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-services", action="store_true", help="tests that need a service fail where they would be skipped"
    )
    parser.addoption("--live", action="store_true", help="collect tests/live too; scripts/test --live runs it alone")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if not report.skipped or hasattr(report, "wasxfail") or not item.config.getoption("--require-services"):
        return report
    reason = report.longrepr[2].removeprefix("Skipped: ")
    if item.get_closest_marker("services") or reason.startswith(MISSING):
        report.outcome = "failed"
        report.longrepr = f"--require-services forbids the skip: {reason}"
    return report
