"""How the catalog's tools are told what is traded, and when: by the spec's pattern, and in no other spelling."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

from quantdeck.core.clock import Now
from quantdeck.dialects.catalog import INVALID_ARGS
from quantdeck.domain import symbols
from quantdeck.sources.candles import Candles, Series

__all__ = ["PATTERN", "Instant", "canonical", "known"]

PATTERN = "^[A-Z]{3,6}(/[A-Z]{3,6})?$"
"""Of an instrument. In this engine's patterns `$` takes no line break before the end."""


def canonical(spelt: str) -> str:
    """What an instrument is called inside: EURUSD is EUR/USD. Answers repeat what the caller wrote."""
    try:
        return symbols.instrument(spelt)
    except symbols.UnknownSymbolError as error:
        raise ValueError(str(error)) from None


def _utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be in the years 1 to 9999 in UTC") from None


def _tradable(spelt: str) -> str:
    canonical(spelt)
    return spelt


Spelt = Annotated[str, Field(pattern=PATTERN), AfterValidator(_tradable)]
Instant = Annotated[AwareDatetime, AfterValidator(_utc)]
"""A time with its offset; another offset is the same question."""


async def known(candles: Candles, spelt: str, now: Now) -> Series:
    """The series of an instrument; MCP-001 where not one bar of it is known."""
    found = await candles.series(canonical(spelt), as_of=now)
    if found is None:
        raise INVALID_ARGS(f"Invalid arguments: no bar of {spelt} is known here", instrument=spelt)
    return found
