"""What the tools of this server say of a market that is not there."""

from __future__ import annotations

from quantdeck.core.clock import Now
from quantdeck.dialects.tradestream import INVALID_SYMBOL
from quantdeck.sources.candles import Candles, Series

__all__ = ["stored"]


async def stored(candles: Candles, symbol: str, now: Now) -> Series | None:
    """What there is of a market. A ticker of which there is nothing is no symbol: four letters may be anything."""
    found = await candles.series(symbol, as_of=now)
    if found is None and "/" not in symbol:
        raise INVALID_SYMBOL(
            f"Invalid symbol: {symbol} is not a trading pair such as BTC/USD, nor a ticker whose bars are stored",
            symbol=symbol,
        )
    return found
