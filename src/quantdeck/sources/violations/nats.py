"""Violations in the log and on the subject `risk.violations`, with the correlation id as header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quantdeck.connections.databases import Databases
from quantdeck.connections.nats import SOURCE, Nats
from quantdeck.core.wire import encode
from quantdeck.settings import Settings
from quantdeck.sources.violations.embedded import LoggedViolations

__all__ = ["PublishedViolations", "connect"]

SUBJECT = "risk.violations"


def connect(url: str, settings: Settings, databases: Databases) -> PublishedViolations:
    """The adapter; nothing is connected before the first violation."""
    del databases
    return PublishedViolations(Nats(url, settings.nats_streams))


class PublishedViolations(LoggedViolations):
    """See the port."""

    source = SOURCE

    def __init__(self, nats: Nats) -> None:
        self._nats = nats

    async def ping(self) -> None:
        await self._nats.ping()

    async def close(self) -> None:
        await self._nats.close()

    async def tell(self, violation: Mapping[str, Any], *, corr_id: str) -> None:
        await super().tell(violation, corr_id=corr_id)
        await self._nats.publish(SUBJECT, encode(violation), {"Corr-ID": corr_id})
