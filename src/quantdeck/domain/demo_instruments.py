"""The instruments of the demo market, as data: the chart spec's watchlist, two currencies and gold."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["INSTRUMENTS", "Instrument"]


@dataclass(frozen=True, slots=True)
class Instrument:
    """What a demo series is drawn from. Figures are of the kind of the real instrument, not its history."""

    symbol: str
    price: float  # around which it moves
    daily_volatility: float  # a fraction
    daily_volume: float
    price_decimals: int = 2
    volume_decimals: int = 0
    late_s: int = 0  # planted: its feed is behind by this much
    silent_minutes: range | None = None  # planted: of each week, counted from Monday 00:00 UTC, those without a bar


_WEDNESDAY = 2 * 1440

INSTRUMENTS = {
    instrument.symbol: instrument
    for instrument in (
        Instrument("SPY", 580, 0.009, 62e6),
        Instrument("QQQ", 500, 0.012, 38e6),
        Instrument("IWM", 225, 0.013, 29e6),
        Instrument("AAPL", 230, 0.015, 52e6),
        Instrument("MSFT", 430, 0.014, 21e6),
        Instrument("GOOGL", 175, 0.017, 26e6),
        Instrument("AMZN", 200, 0.018, 40e6),
        Instrument("META", 570, 0.020, 14e6),
        Instrument("NVDA", 135, 0.029, 240e6),
        Instrument("TSLA", 280, 0.036, 95e6),
        Instrument("BBAI", 3.6, 0.065, 60e6, price_decimals=4),
        Instrument("RIOT", 11, 0.055, 30e6, price_decimals=4),
        Instrument("NVDX", 14, 0.058, 18e6, price_decimals=4),
        Instrument("SMR", 22, 0.060, 11e6, price_decimals=4),
        Instrument("APLD", 8.5, 0.062, 22e6, price_decimals=4),
        Instrument("SOUN", 9.5, 0.066, 45e6, price_decimals=4),
        Instrument("SERV", 11, 0.068, 5e6, price_decimals=4),
        Instrument("ACHR", 8, 0.053, 28e6, price_decimals=4),
        Instrument("BITQ", 16, 0.040, 0.2e6, price_decimals=4),
        Instrument("UEC", 7, 0.042, 9e6, price_decimals=4),
        Instrument("BTC/USD", 90_000, 0.024, 21_000, volume_decimals=6),
        # Planted: a gap. Its exchange is shut for maintenance early every Wednesday.
        Instrument("ETH/USD", 3_200, 0.033, 310_000, volume_decimals=5,
                   silent_minutes=range(_WEDNESDAY + 120, _WEDNESDAY + 150)),
        Instrument("EUR/USD", 1.09, 0.0045, 180_000, price_decimals=5),
        Instrument("GBP/USD", 1.28, 0.0052, 140_000, price_decimals=5),
        # Planted: a stale symbol. Its feed is three hours behind.
        Instrument("XAU/USD", 2_650, 0.0095, 160_000, late_s=3 * 3600),
    )
}  # fmt: skip
