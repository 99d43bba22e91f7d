"""Tests of services that are not ours, on the services themselves: `scripts/test --live`, and in no other run.

A file is a service. It says in NEEDS which names of the environment it cannot do without; where one of them is not set
its tests are skipped, and the end of the run says so. Another service joins by a file.
"""

from __future__ import annotations

import os
from types import ModuleType

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Only a run that says --live knows of these."""
    return None if config.getoption("--live") else True


def _unset(module: ModuleType) -> list[str]:
    needs: tuple[str, ...] = module.NEEDS  # a file without it is not finished
    return [name for name in needs if not os.environ.get(name, "").strip()]


@pytest.fixture(autouse=True)
def _has_what_it_needs(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--live"):  # of a file that is named itself nobody asks whether to ignore it
        pytest.skip("asks a real service, by scripts/test --live only")
    if unset := _unset(request.module):
        pytest.skip(f"not set: {', '.join(unset)}")


def pytest_collection_finish(session: pytest.Session) -> None:
    modules = {item.module for item in session.items if isinstance(item, pytest.Function)}
    told = {module.__name__.rpartition("test_")[2]: _unset(module) for module in modules if hasattr(module, "NEEDS")}
    session.config.stash[_TOLD] = {service: unset for service, unset in sorted(told.items()) if unset}


_TOLD = pytest.StashKey[dict[str, list[str]]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for service, unset in terminalreporter.config.stash.get(_TOLD, {}).items():
        terminalreporter.write_line(f"{service}: not asked, since {', '.join(unset)} is not set")
