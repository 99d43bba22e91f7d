"""get_storage_info: which symbols' bars are stored, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotConfigured
from quantdeck.dialects.chart import Manner, chart
from quantdeck.domain.symbols import asset_class
from quantdeck.sources.candles import Candles


@dataclass(frozen=True, slots=True)
class StoredSymbols:
    stocks: list[str]
    crypto: Annotated[list[str], Field(description="With an underscore, as files are named")]


@dataclass(frozen=True, slots=True)
class StorageInfo:
    data_directory: str
    stored_symbols: StoredSymbols
    total_size_mb: float
    source: str


@chart.tool()
async def get_storage_info(candles: Candles, now: Now, manner: Manner) -> StorageInfo:
    """Which symbols' bars are stored, where, and their size"""
    storage = await candles.storage(as_of=now)
    try:
        symbols = await candles.symbols(as_of=now)
    except NotConfigured:
        symbols = []
    by_class = {kind: [s for s in symbols if asset_class(s) == kind] for kind in ("stock", "crypto")}
    return StorageInfo(
        data_directory=storage.place,
        stored_symbols=StoredSymbols(by_class["stock"], [symbol.replace("/", "_") for symbol in by_class["crypto"]]),
        total_size_mb=round(storage.size_bytes / 2**20, 2),
        source=manner.came_from(candles.source),
    )
