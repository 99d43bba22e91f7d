"""What sweeps read and write: a spec by its name, and the implementations that were found for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import orjson

from quantdeck.connections.database import Database, Row
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.core.errors import NotInPast
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.sources.sql.as_of import refuse_later

__all__ = ["Found", "Implementations", "StoredSpec", "made_id"]

_SPEC = """
    SELECT spec_id, name, description, indicators, entry_conditions, exit_conditions, parameters, updated_at
    FROM strategy_specs WHERE name = :name AND created_at <= :as_of
"""

_SAVE_SPEC = """
    INSERT INTO strategy_specs (spec_id, name, description, indicators, entry_conditions, exit_conditions, parameters,
                                source, reasoning, is_active, created_at, updated_at)
    VALUES (:spec_id, :name, :description, :indicators, :entry_conditions, :exit_conditions, :parameters,
            'USER_CREATED', :reasoning, TRUE, :now, :now)
    ON CONFLICT (name) DO NOTHING RETURNING spec_id
"""

_HELD = """
    SELECT impl_id, backtest_sharpe, backtest_accuracy, backtest_return, backtest_max_drawdown, backtest_trades,
           backtest_metrics, created_at, updated_at
    FROM strategy_implementations WHERE spec_id = :spec_id AND symbol = :symbol
"""

# What became of one since, its status and what it earned forward, is not a backtest's to change.
_STORE = """
    INSERT INTO strategy_implementations (impl_id, spec_id, symbol, parameters, status, discovered_by, backtest_sharpe,
                                          backtest_accuracy, backtest_return, backtest_max_drawdown, backtest_trades,
                                          backtest_metrics, created_at, updated_at)
    VALUES (:impl_id, :spec_id, :symbol, :parameters, 'CANDIDATE', 'GRID_SEARCH', :backtest_sharpe,
            :backtest_accuracy, :backtest_return, :backtest_max_drawdown, :backtest_trades, :backtest_metrics, :now,
            :now)
    ON CONFLICT (impl_id) DO UPDATE SET
        backtest_sharpe = excluded.backtest_sharpe, backtest_accuracy = excluded.backtest_accuracy,
        backtest_return = excluded.backtest_return, backtest_max_drawdown = excluded.backtest_max_drawdown,
        backtest_trades = excluded.backtest_trades, backtest_metrics = excluded.backtest_metrics,
        updated_at = excluded.updated_at
"""


@dataclass(frozen=True, slots=True)
class StoredSpec:
    """As it stands in the table: other programs write there too, so it is to be read before it is run."""

    spec_id: str
    lists: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """Numbers that a search found, and what they came to. `metrics` has its figures by the names of `Metrics`."""

    parameters: Mapping[str, int | float]
    metrics: Mapping[str, Any]


def made_id(spec_id: str, symbol: str, timeframe: str, parameters: Mapping[str, int | float]) -> str:
    """The id of what a sweep found: the same whenever it is found again."""
    said = [spec_id, symbol, timeframe, dict(parameters)]
    return str(uuid5(NAMESPACE_URL, f"quantdeck:sweep:{orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()}"))


class Implementations(Source):
    """See the module."""

    group = "desk"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database = database
        self.source = source or database.source

    async def ping(self) -> None:
        """Return if these tables can be read."""
        await self._database.row("SELECT count(*) AS specs FROM strategy_specs WHERE FALSE")

    async def spec(self, name: str, *, as_of: Now) -> StoredSpec | None:
        """The spec of this name; None where there was none by then."""
        row = await self._database.row(_SPEC, name=name, as_of=as_of)
        if row is None:
            return None
        refuse_later([row.pop("updated_at")], as_of=as_of, what=f"Spec {name}", source=self.source)
        return StoredSpec(str(row.pop("spec_id")), row)

    async def keep_spec(self, spec: StrategySpec, *, as_of: Now) -> str | None:
        """Store a spec that a person wrote; its id, or None where its name is taken."""
        made = await self._database.returning(
            _SAVE_SPEC,
            spec_id=str(uuid4()),
            name=spec.name,
            description=spec.description,
            reasoning=spec.reasoning,
            now=as_of,
            **spec.stored(),
        )
        return str(made[0]["spec_id"]) if made else None

    async def store(
        self, spec_id: str, symbol: str, timeframe: str, found: Sequence[Found], *, as_of: Now
    ) -> Counter[str]:
        """All or nothing; how many are new, were updated, or stand there as they are. They are known from `as_of` on.

        What was found before is updated in place. What others have implemented is left alone, whatever its numbers.
        """
        counts: Counter[str] = Counter(new=0, updated=0, unchanged=0)
        async with self._database.transaction():
            rows = await self._database.rows(_HELD, spec_id=spec_id, symbol=symbol)
            held = {str(row["impl_id"]): row for row in rows}
            for row in _rows(spec_id, symbol, timeframe, found):
                before = held.get(row["impl_id"])
                what = "new" if before is None else "unchanged" if _is_as(before, row) else "updated"
                counts[what] += 1
                if what != "unchanged":
                    self._refuse_past(before, as_of)
                    await self._database.execute(_STORE, **row, now=as_of)
        return counts

    def _refuse_past(self, before: Row | None, as_of: Now) -> None:
        if before is not None and max(before["created_at"], before["updated_at"]) > as_of:
            raise NotInPast(
                "These implementations were stored after the instant at which the clock stands; an earlier one cannot "
                "change them. Give the past a home of its own",
                source=self.source,
                clock=as_of,
            )


def _rows(spec_id: str, symbol: str, timeframe: str, found: Sequence[Found]) -> Iterator[Row]:
    for one in found:
        yield {
            "impl_id": made_id(spec_id, symbol, timeframe, one.parameters),
            "spec_id": spec_id,
            "symbol": symbol,
            "parameters": dict(one.parameters),
            "backtest_sharpe": one.metrics["sharpe_ratio"],
            "backtest_accuracy": one.metrics["win_rate"],
            "backtest_return": one.metrics["total_return"],
            "backtest_max_drawdown": one.metrics["max_drawdown"],
            "backtest_trades": one.metrics["trades"],
            "backtest_metrics": dict(one.metrics),
        }


def _is_as(before: Row, row: Row) -> bool:
    return all(before[column] == row[column] for column in row if column.startswith("backtest_"))
