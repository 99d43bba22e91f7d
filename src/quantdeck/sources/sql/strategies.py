"""Strategies that may be traded, how they did, and what they last signalled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Literal

from quantdeck.connections.database import Database, Row
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.consensus import Action
from quantdeck.sources.sql.as_of import canonical_uuid, refuse_later

__all__ = ["ACTIONS", "Metric", "RankedStrategy", "Signal", "Strategies", "Strategy"]

Metric = Literal["sharpe", "accuracy", "return"]

_MEASURED = "CASE WHEN {0} BETWEEN -1e308 AND 1e308 THEN {0} END"
"""A stored figure, and NULL for NaN and the infinities, which would be best or worst of all."""

_EARNED = ", ".join(
    f"COALESCE({_MEASURED.format(f'i.forward_{figure}')}, {_MEASURED.format(f'i.backtest_{figure}')}) AS {name}"
    for figure, name in (("sharpe", "sharpe"), ("accuracy", "accuracy"), ("return", "earned"))
)

# Eligible: validated or deployed, of an active spec, for the symbol, and known as of the instant.
_ELIGIBLE = """
    FROM strategy_implementations i JOIN strategy_specs s ON s.spec_id = i.spec_id
    WHERE i.symbol = :symbol AND i.status IN ('VALIDATED', 'DEPLOYED') AND s.is_active
      AND i.created_at <= :as_of AND s.created_at <= :as_of
"""

_GIVEN = "AND signal_type <> 'backtest'"
"""What a backtest made up was said to nobody."""

_ORDER: dict[Metric, str] = {"sharpe": "sharpe", "accuracy": "accuracy", "return": "earned"}

_RANKED = f"""
    SELECT e.*, COALESCE(e.forward_trades, NULLIF(n.signals, 0), e.backtest_trades, 0) AS signals_count
    FROM (
        SELECT i.impl_id, s.name, i.forward_trades, i.backtest_trades, {_EARNED} {_ELIGIBLE}
    ) e
    LEFT JOIN (
        SELECT impl_id, count(*) AS signals FROM implementation_signals
        WHERE symbol = :symbol AND created_at <= :as_of {_GIVEN} GROUP BY impl_id
    ) n ON n.impl_id = e.impl_id
    ORDER BY {{metric}} DESC NULLS LAST, signals_count DESC, e.impl_id
    LIMIT :limit OFFSET :offset
"""  # noqa: S608 - put together from the literals of this module

_COUNTED = f"SELECT count(*) AS total {_ELIGIBLE}"

# Whatever their status now: what is retired today may have been eligible then.
_CHANGED = """
    SELECT max(i.updated_at) AS "implementations [TIMESTAMP]", max(s.updated_at) AS "specs [TIMESTAMP]"
    FROM strategy_implementations i JOIN strategy_specs s ON s.spec_id = i.spec_id
    WHERE i.symbol = :symbol AND i.created_at <= :as_of AND s.created_at <= :as_of
"""

# One statement, so that a strategy and its signal are of one moment and one round trip.
_FOUND = f"""
    SELECT i.symbol, i.parameters, i.updated_at, l.action, l.strength, l.signal_timestamp
    FROM strategy_implementations i
    LEFT JOIN (
        SELECT action, strength, signal_timestamp FROM implementation_signals
        WHERE impl_id = :strategy_id AND symbol = :symbol AND created_at <= :as_of
          AND signal_timestamp <= :as_of {_GIVEN}
        ORDER BY signal_timestamp DESC, created_at DESC, signal_id LIMIT 1
    ) l ON TRUE
    WHERE i.impl_id = :strategy_id AND i.created_at <= :as_of
"""  # noqa: S608 - likewise

_VOTES = f"""
    SELECT e.impl_id, l.action, l.strength, l.signal_timestamp
    FROM (SELECT i.impl_id {_ELIGIBLE}) e
    LEFT JOIN (
        SELECT impl_id, action, strength, signal_timestamp,
               row_number() OVER (
                   PARTITION BY impl_id ORDER BY signal_timestamp DESC, created_at DESC, signal_id
               ) AS newest
        FROM implementation_signals
        WHERE symbol = :symbol AND created_at <= :as_of AND signal_timestamp <= :as_of
          AND signal_timestamp >= :since {_GIVEN}
    ) l ON l.impl_id = e.impl_id AND l.newest = 1
    ORDER BY e.impl_id
"""  # noqa: S608 - likewise

# Closing a long sells it, closing a short buys it back.
ACTIONS: dict[str, Action] = {
    "BUY": "BUY",
    "SELL": "SELL",
    "HOLD": "HOLD",
    "CLOSE_LONG": "SELL",
    "CLOSE_SHORT": "BUY",
}


@dataclass(frozen=True, slots=True)
class RankedStrategy:
    """A strategy with what it is ranked by. A figure nobody computed is None."""

    strategy_id: str
    name: str
    sharpe: float | None
    accuracy: float | None
    earned: float | None
    signals_count: int


@dataclass(frozen=True, slots=True)
class Signal:
    """What a strategy said, in the three words there are, how strongly (0 to 1), and when."""

    strategy_id: str
    action: Action
    strength: float
    triggered_at: datetime


@dataclass(frozen=True, slots=True)
class Strategy:
    """One implementation, by its id, and the last it said of the symbol that was asked for."""

    strategy_id: str
    symbol: str
    parameters: dict[str, Any]
    signal: Signal | None


class Strategies(Source):
    """Read only. Every read is as of an instant: what became known later is not in the answer."""

    group = "desk"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database = database
        self.source = source or database.source

    async def ping(self) -> None:
        """Return if these tables can be read."""
        await self._database.row("SELECT count(*) AS specs FROM strategy_specs WHERE FALSE")

    async def ranked(
        self, symbol: str, *, by: Metric, offset: int, limit: int, as_of: Now
    ) -> tuple[list[RankedStrategy], int]:
        """The best eligible strategies of a symbol, best first, and how many there are in all.

        What was not measured comes last; ties go to more signals, then to the id.
        """
        async with self._database.snapshot():
            total = await self._count(symbol, as_of)
            rows = await self._database.rows(
                _RANKED.format(metric=_ORDER[by]),
                symbol=symbol, as_of=as_of, limit=limit, offset=offset,
            )  # fmt: skip
        return [_ranked(row) for row in rows], total

    async def find(self, strategy_id: str, symbol: str, *, as_of: Now) -> Strategy | None:
        """The implementation with this id and its newest signal of a symbol, however old.

        An id that is no UUID is nobody's.
        """
        canonical = canonical_uuid(strategy_id)
        if canonical is None:
            return None
        row = await self._database.row(_FOUND, strategy_id=canonical, symbol=symbol, as_of=as_of)
        if row is None:
            return None
        refuse_later([row["updated_at"]], as_of=as_of, what=f"Strategy {canonical}", source=self.source)
        parameters = row["parameters"]
        signal = _signal(canonical, row) if row["action"] else None
        return Strategy(canonical, row["symbol"], parameters if isinstance(parameters, dict) else {}, signal)

    async def votes(self, symbol: str, *, since: datetime, as_of: Now) -> list[tuple[str, Signal | None]]:
        """Each eligible strategy with its newest signal since then, or None."""
        async with self._database.snapshot():
            await self._count(symbol, as_of)
            rows = await self._database.rows(_VOTES, symbol=symbol, as_of=as_of, since=since)
        return [(str(row["impl_id"]), _signal(str(row["impl_id"]), row) if row["action"] else None) for row in rows]

    async def _count(self, symbol: str, as_of: Now) -> int:
        (row,) = await self._database.rows(_COUNTED, symbol=symbol, as_of=as_of)
        if as_of.fixed:
            (changed,) = await self._database.rows(_CHANGED, symbol=symbol, as_of=as_of)
            refuse_later(changed.values(), as_of=as_of, what=f"The ranking of {symbol}", source=self.source)
        return int(row["total"])


def _ranked(row: Row) -> RankedStrategy:
    return RankedStrategy(
        str(row["impl_id"]), row["name"], row["sharpe"], row["accuracy"], row["earned"],
        int(row["signals_count"]),
    )  # fmt: skip


def _signal(strategy_id: str, row: Row) -> Signal:
    return Signal(strategy_id, ACTIONS[row["action"]], _share(row["strength"]), row["signal_timestamp"])


def _share(strength: float | None) -> float:
    """A strength within 0 to 1; one that nobody measured, or that is no number, is none."""
    return min(max(strength, 0.0), 1.0) if strength is not None and isfinite(strength) else 0.0
