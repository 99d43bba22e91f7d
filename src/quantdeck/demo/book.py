"""The demo world's portfolio: what the account `default` holds, has and may risk. A pure function of the seed.

It is told as it was on MARKED: rows like these are changed in place, so a clock that stands before it finds none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from quantdeck.demo.world import BEGAN, World

__all__ = ["MARKED", "OVERWEIGHT", "UNCOVERED", "Book"]

MARKED = datetime(2025, 12, 15, 21, tzinfo=UTC)
"""When prices and balances were last written."""

OVERWEIGHT = "ETH/USD"
"""Planted: it has grown beyond what one position may be. Nothing may be added to it, and any of it may be sold."""
UNCOVERED = "EUR/USD"
"""Planted: a short of a time when shorts were allowed. It may be bought back, and not added to."""

_ACCOUNT = "default"
_TOTAL = 250_000.0

# Symbol, side, size, about what it was bought or sold at and stands at now, when it was opened and closed.
_TRADES: tuple[tuple[str, str, float, float, float, tuple[int, int], tuple[int, int] | None], ...] = (
    ("BTC/USD", "LONG", 0.35, 83_000.0, 91_000.0, (3, 10), None),
    (OVERWEIGHT, "LONG", 14.0, 2600.0, 3300.0, (5, 2), None),
    ("GBP/USD", "LONG", 15_000.0, 1.27, 1.29, (6, 3), (10, 1)),
    (UNCOVERED, "SHORT", 20_000.0, 1.11, 1.09, (9, 15), None),
    ("XAU/USD", "LONG", 4.0, 2640.0, 2710.0, (11, 20), None),
)

Row = dict[str, Any]


class Book:
    """Rows by table."""

    def __init__(self, world: World) -> None:
        self._unit: Callable[..., float] = world.unit
        self._seed = world.seed

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
        """The row of risk_limits."""
        row = {
            "account_id": _ACCOUNT, "strategy_id": "", "max_position_size": None, "max_position_pct": 0.15,
            "max_exposure_pct": 0.6, "max_open_positions": 5, "max_daily_loss": None, "max_daily_loss_pct": 0.03,
            "max_drawdown_pct": 0.15, "allow_short": False, "created_at": BEGAN, "updated_at": MARKED,
        }  # fmt: skip
        return [row]

    def _position(
        self, symbol: str, side: str, size: float, cost: float, price: float, opened: tuple[int, int],
        closed: tuple[int, int] | None,
    ) -> Row:  # fmt: skip
        entry, last = self._near(cost, symbol, "cost"), self._near(price, symbol, "price")
        opened_at = datetime(2025, *opened, 9 + int(self._unit(symbol, "hour") * 9), tzinfo=UTC)
        return {
            "position_id": str(uuid5(NAMESPACE_URL, f"quantdeck:{self._seed}:position:{symbol}")),
            "account_id": _ACCOUNT, "symbol": symbol, "side": side, "size": size, "entry_price": entry,
            "current_price": last, "realized_pnl": None if closed is None else round((last - entry) * size, 2),
            "opened_at": opened_at, "closed_at": None if closed is None else datetime(2025, *closed, 14, tzinfo=UTC),
            "created_at": opened_at, "updated_at": MARKED,
        }  # fmt: skip

    def _near(self, about: float, *what: str) -> float:
        return float(f"{about * (0.995 + self._unit(*what) / 100):.5g}")
