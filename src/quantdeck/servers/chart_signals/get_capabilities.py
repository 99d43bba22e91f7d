"""get_capabilities: what this server computes, and of whose bars."""

from __future__ import annotations

from dataclasses import dataclass

from quantdeck.dialects.chart import LENGTHS, Manner, chart
from quantdeck.domain.crossings import BB, EMA, MACD, RSI, SMA
from quantdeck.sources.candles import Candles
from quantdeck.sources.candles.shelf import IN_MEMORY

VERSION = "1.0.0"
"""The spec's."""

INDICATORS = [
    f"EMA{EMA}",
    f"SMA{SMA}",
    "MACD({},{},{})".format(*MACD),
    f"RSI{RSI}",
    "BB({},{})".format(*BB),
]


@dataclass(frozen=True, slots=True)
class Capabilities:
    version: str
    protocol: str
    indicators: list[str]
    timeframes: list[str]
    asset_types: list[str]
    data_source: str
    storage: str
    max_bars_in_memory: int
    source: str


@chart.tool()
async def get_capabilities(candles: Candles, manner: Manner) -> Capabilities:
    """Indicators, timeframes, protocol version and data source of this server"""
    return Capabilities(
        version=VERSION,
        protocol=manner.protocol,
        indicators=INDICATORS,
        timeframes=list(LENGTHS),
        asset_types=["stocks", "crypto"],
        data_source=_data_source(candles.source, manner),
        storage=candles.source,
        max_bars_in_memory=IN_MEMORY,
        source=manner.came_from(candles.source),
    )


def _data_source(source: str, manner: Manner) -> str:
    if source == "demo":
        return "demo"
    collected = source == "alpaca" or manner.call.runtime.options["alpaca"].api_key.get_secret_value()
    return "Alpaca Markets" if collected else f"stored bars ({source})"
