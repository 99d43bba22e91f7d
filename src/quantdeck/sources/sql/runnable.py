"""Strategies as something that can be run: a spec's rules with numbers for its parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from quantdeck.connections.database import Database, Row
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.sources.sql.as_of import canonical_uuid, refuse_later

__all__ = ["Runnable", "Runnables", "UnreadableSpecError"]

_PARTS = ("indicators", "entry_conditions", "exit_conditions", "parameters")

_RULES = ", ".join(f"s.{part}" for part in _PARTS)

_IMPLEMENTATION = f"""
    SELECT s.name, {_RULES}, i.parameters AS numbers, i.symbol, i.updated_at, s.updated_at AS spec_updated_at
    FROM strategy_implementations i JOIN strategy_specs s ON s.spec_id = i.spec_id
    WHERE i.impl_id = :asked AND i.created_at <= :as_of AND s.created_at <= :as_of
"""  # noqa: S608 - put together from the literals of this module

_SPEC = f"""
    SELECT s.name, {_RULES}, NULL AS numbers, NULL AS symbol, s.updated_at, s.updated_at AS spec_updated_at
    FROM strategy_specs s WHERE s.{{column}} = :asked AND s.created_at <= :as_of
"""  # noqa: S608 - likewise


class UnreadableSpecError(ValueError):
    """What is stored of a spec cannot be run; the sentence says of each part why."""


@dataclass(frozen=True, slots=True)
class Runnable:
    """`parameters` are an implementation's; without any the spec's defaults count. A spec itself has no symbol."""

    spec: StrategySpec
    parameters: dict[str, Any]
    symbol: str | None


class Runnables(Source):
    """Read only. Every read is as of an instant: what became known later is not in the answer."""

    group = "desk"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database = database
        self.source = source or database.source

    async def ping(self) -> None:
        """Return if these tables can be read."""
        await self._database.row("SELECT count(*) AS specs FROM strategy_specs WHERE FALSE")

    async def find(self, called: str, *, as_of: Now) -> Runnable | None:
        """The implementation with this id, or the spec with this id or this name, whatever the case of its letters.

        Raises UnreadableSpecError for rules that another program stored and nobody could run.
        """
        asked = {"asked": canonical_uuid(called), "as_of": as_of}
        if asked["asked"] is None:
            name = called.strip().upper()
            sql = _SPEC.format(column="name")
            row = await self._database.row(sql, asked=name, as_of=as_of) if name.isprintable() else None
        else:
            row = await self._database.row(_IMPLEMENTATION, **asked)
            row = row or await self._database.row(_SPEC.format(column="spec_id"), **asked)
        if row is None:
            return None
        changed = (row["updated_at"], row["spec_updated_at"])
        refuse_later(changed, as_of=as_of, what=f"Strategy {called[:80]}", source=self.source)
        return _runnable(row)


def _runnable(row: Row) -> Runnable:
    # Only rules can make a spec unfit to run: another program's name or description may be of any length.
    found = read(name="STORED", **{part: row[part] for part in _PARTS})
    if found.spec is None:
        said = "; ".join(f"{problem.path} {problem.message}" for problem in found.problems[:3])
        raise UnreadableSpecError(f"{row['name'][:64]} cannot be run: {said}")
    numbers = row["numbers"]
    return Runnable(replace(found.spec, name=row["name"]), numbers if isinstance(numbers, dict) else {}, row["symbol"])
