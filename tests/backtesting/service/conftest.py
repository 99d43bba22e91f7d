"""A service, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.backtesting.service.asking import Client, client
from tests.support.backtester import Service, begun


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with begun(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture
async def asking(service: Service) -> AsyncIterator[Client]:
    async with client(service.target) as found:
        yield found
