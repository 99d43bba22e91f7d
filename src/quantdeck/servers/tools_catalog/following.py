"""The background task of a serving process: it has positions follow the fills that are published."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from quantdeck.core.errors import NotConfigured
from quantdeck.sources.fills import Fills, NewFill
from quantdeck.sources.positions import Positions

__all__ = ["follow_fills"]


async def follow_fills(app: Any) -> None:
    """Count them, and store each where there is a desk: what size costs is learnt from them."""
    fills: Fills = app.runtime.source(Fills)

    async def store(fill: NewFill) -> None:
        with suppress(NotConfigured):
            await fills.add(fill)

    with suppress(NotConfigured):
        await app.runtime.source(Positions).follow(store)
