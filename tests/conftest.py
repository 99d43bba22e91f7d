"""`--require-services`: where it is given, a service that cannot be started is a failure, not a skip."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-services", action="store_true", help="tests marked `services` fail where they would be skipped"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    wanted = item.config.getoption("--require-services") and item.get_closest_marker("services")
    if wanted and report.skipped and not hasattr(report, "wasxfail"):
        _, _, reason = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"--require-services forbids the skip: {reason.removeprefix('Skipped: ')}"
    return report
