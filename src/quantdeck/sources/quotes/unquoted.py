"""No feed of quotes: who asks makes do with bars."""

from __future__ import annotations

from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured
from quantdeck.settings import Settings
from quantdeck.sources.quotes import Quote, Quotes

__all__ = ["Unquoted", "connect"]


def connect(url: str, settings: Settings, databases: Databases) -> Unquoted:
    """The adapter."""
    del url, settings, databases
    return Unquoted()


class Unquoted(Quotes):
    """See the port."""

    source = "none"

    async def ping(self) -> None:
        raise NotConfigured("No feed of quotes: set QUANTDECK_NATS", source=self.source, setting="QUANTDECK_NATS")

    async def latest(self, symbol: str, *, as_of: Now) -> Quote | None:
        return None
