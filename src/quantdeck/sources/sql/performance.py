"""How implementations did, as it was measured: in live trading, on paper, or in backtests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import NAMESPACE_URL, uuid5

from quantdeck.connections.database import Database
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.performance import Stretch
from quantdeck.sources.sql.as_of import canonical_uuid

__all__ = ["SAVE", "Environment", "Measured", "Performance", "row_of"]

Environment = Literal["LIVE", "PAPER", "BACKTEST"]

_KNOWN = "SELECT count(*) AS known FROM strategy_implementations WHERE impl_id = :impl_id AND created_at <= :as_of"

_STRETCHES = """
    SELECT environment, period_end, total_trades, winning_trades, total_return, sharpe_ratio
    FROM strategy_performance
    WHERE impl_id = :impl_id AND period_end > :since AND period_end <= :as_of AND created_at <= :as_of {symbol}
    ORDER BY period_end, performance_id
"""

SAVE = """
    INSERT INTO strategy_performance (performance_id, impl_id, symbol, environment, timeframe, period_start, period_end,
                                      total_trades, winning_trades, total_return, sharpe_ratio, created_at)
    VALUES (:performance_id, :impl_id, :symbol, :environment, :timeframe, :period_start, :period_end,
            :total_trades, :winning_trades, :total_return, :sharpe_ratio, :created_at)
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One stretch of an implementation's trading that is over."""

    impl_id: str
    symbol: str
    environment: Environment
    timeframe: str | None
    start: datetime
    end: datetime
    trades: int
    winning: int
    earned: float | None
    sharpe: float | None


class Performance(Source):
    """Every read is as of an instant. What is measured is never changed: who measures it again is not heard."""

    group = "desk"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database = database
        self.source = source or database.source

    async def ping(self) -> None:
        """Return if the table can be read."""
        await self._database.row("SELECT count(*) AS stretches FROM strategy_performance WHERE FALSE")

    async def stretches(
        self, impl_id: str, *, since: datetime, symbol: str | None = None, as_of: Now
    ) -> dict[Environment, list[Stretch]] | None:
        """What ended after `since`, by environment, the oldest first; None where there is no such implementation."""
        canonical = canonical_uuid(impl_id)
        if canonical is None:
            return None
        asked: dict[str, Any] = {"impl_id": canonical, "as_of": as_of}
        filtered = _STRETCHES.format(symbol="" if symbol is None else "AND symbol = :symbol")
        about = {} if symbol is None else {"symbol": symbol}
        async with self._database.snapshot():
            (counted,) = await self._database.rows(_KNOWN, **asked)
            if not counted["known"]:
                return None
            rows = await self._database.rows(filtered, **asked, since=since, **about)
        found: dict[Environment, list[Stretch]] = {}
        for row in rows:
            figures = (int(row["total_trades"]), int(row["winning_trades"]), row["total_return"], row["sharpe_ratio"])
            found.setdefault(row["environment"], []).append(Stretch(row["period_end"], *figures))
        return found

    async def save(self, measured: Sequence[Measured], *, as_of: Now) -> None:
        """Keep what is not kept yet; it is known from `as_of` on."""
        rows = [row_of(one, as_of) for one in measured]
        if rows:
            await self._database.execute_many(SAVE, rows)


def row_of(one: Measured, known_at: datetime) -> dict[str, Any]:
    """As it is stored. One stretch has one id, whoever measures it."""
    about = f"quantdeck:performance:{one.impl_id}:{one.symbol}:{one.environment}:{one.start}:{one.end}"
    return {
        "performance_id": str(uuid5(NAMESPACE_URL, about)), "impl_id": one.impl_id, "symbol": one.symbol,
        "environment": one.environment, "timeframe": one.timeframe, "period_start": one.start, "period_end": one.end,
        "total_trades": one.trades, "winning_trades": one.winning, "total_return": one.earned,
        "sharpe_ratio": one.sharpe, "created_at": known_at,
    }  # fmt: skip
