"""The demo world's portfolio: what the account `default` holds, has and may risk. A pure function of the seed.

It was traded on the demo market: each position was opened at the price of its time, and stands at the one of MARKED.
It is told as it was then: rows like these are changed in place, so a clock that stands before it finds none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from quantdeck.demo.world import BEGAN, World
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of

__all__ = ["MARKED", "OVERWEIGHT", "STRATEGY", "UNCOVERED", "Book"]

MARKED = datetime(2025, 12, 15, 21, tzinfo=UTC)
"""When prices and balances were last written."""

OVERWEIGHT = "ETH/USD"
"""Planted: it is larger than one position may be. Nothing may be added to it, and any of it may be sold."""
UNCOVERED = "EUR/USD"
"""Planted: a short of a time when shorts were allowed. It may be bought back, and not added to."""

STRATEGY = "momentum_v2"
"""Has limits of its own, for the catalog's check."""

_ACCOUNT = "default"
_TOTAL = 250_000.0

# Symbol, side, about what it is worth on MARKED, when it was opened and closed: on days on which its market trades.
# What moves most was opened last, or there would be seeds in which the account could not have paid for it.
_TRADES: tuple[tuple[str, str, float, tuple[int, int], tuple[int, int] | None], ...] = (
    ("BTC/USD", "LONG", 32_000.0, (9, 10), None),
    (OVERWEIGHT, "LONG", 46_000.0, (11, 3), None),
    ("GBP/USD", "LONG", 19_000.0, (6, 3), (10, 1)),
    (UNCOVERED, "SHORT", 22_000.0, (9, 15), None),
    ("XAU/USD", "LONG", 10_800.0, (11, 20), None),
)

Row = dict[str, Any]


class Book:
    """Rows by table."""

    def __init__(self, world: World) -> None:
        self._world, self._market = world, DemoMarket(world.seed, shape_of)

    def positions(self) -> list[Row]:
        """Rows of positions, one of them closed."""
        return [self._position(*trade) for trade in _TRADES]

    def accounts(self) -> list[Row]:
        """The row of accounts, which agrees with the positions."""
        used = round(sum(row["size"] * row["entry_price"] for row in self.positions() if row["closed_at"] is None), 2)
        row = {
            "account_id": _ACCOUNT, "currency": "USD", "total_balance": _TOTAL,
            "available_balance": round(_TOTAL - used, 2), "margin_used": used, "peak_balance": 1.02 * _TOTAL,
            "created_at": BEGAN, "updated_at": MARKED,
        }  # fmt: skip
        return [row]

    def risk_limits(self) -> list[Row]:
        """The rows of risk_limits: the account's, and those of a strategy that may sell short."""
        row = {
            "account_id": _ACCOUNT, "strategy_id": "", "max_position_size": None, "max_position_pct": 0.15,
            "max_exposure_pct": 0.6, "max_open_positions": 5, "max_daily_loss": None, "max_daily_loss_pct": 0.03,
            "max_drawdown_pct": 0.15, "allow_short": False, "max_units": None, "max_exposure": None,
            "created_at": BEGAN, "updated_at": MARKED,
        }  # fmt: skip
        of_a_strategy = {
            **row, "strategy_id": STRATEGY, "max_position_size": 100_000.0, "max_position_pct": None,
            "max_exposure_pct": None, "max_exposure": 220_000.0, "max_open_positions": 6, "allow_short": True,
        }  # fmt: skip
        return [row, of_a_strategy]

    def _position(
        self, symbol: str, side: str, value: float, opened: tuple[int, int], closed: tuple[int, int] | None
    ) -> Row:
        opened_at = datetime(2025, *opened, 9 + int(self._world.unit(symbol, "hour") * 9), tzinfo=UTC)
        closed_at = None if closed is None else datetime(2025, *closed, 14, tzinfo=UTC)
        entry, last = self._price(symbol, opened_at), self._price(symbol, closed_at or MARKED)
        size = float(f"{value / last:.3g}")
        return {
            "position_id": str(uuid5(NAMESPACE_URL, f"quantdeck:{self._world.seed}:position:{symbol}")),
            "account_id": _ACCOUNT, "symbol": symbol, "side": side, "size": size, "entry_price": entry,
            "current_price": last, "realized_pnl": None if closed is None else round((last - entry) * size, 2),
            "opened_at": opened_at, "closed_at": closed_at, "created_at": opened_at, "updated_at": MARKED,
        }  # fmt: skip

    def _price(self, symbol: str, at: datetime) -> float:
        """The market's last price before an instant of a day on which it trades."""
        day, second = divmod(int(at.timestamp()), DAY_S)
        bars = self._market.day(INSTRUMENTS[symbol], day)
        return float(bars.close[bars.time < day * DAY_S + second][-1])
