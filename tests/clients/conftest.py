"""One demo world for all clients, and the program that serves it over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.serving import QUANTDECK, make_demo, serving


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a program that serves the demo world."""
    return make_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def url(demo: dict[str, str]) -> Iterator[str]:
    with serving([QUANTDECK, "serve", "--http", "--port", "0", "strategy-mcp"], demo) as url:
        yield url
