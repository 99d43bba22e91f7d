"""Strategy specs by their names, as what can be run."""

from __future__ import annotations

from quantdeck.connections.database import Database
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.sources.sql.as_of import refuse_later

__all__ = ["Definitions"]

_NAMED = """
    SELECT name, indicators, entry_conditions, exit_conditions, parameters, updated_at FROM strategy_specs
    WHERE name = :name AND is_active AND created_at <= :as_of
"""


class Definitions(Source):
    """Every read is as of an instant: what became known later is not in the answer."""

    group = "desk"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database = database
        self.source = source or database.source

    async def named(self, name: str, *, as_of: Now) -> StrategySpec | None:
        """The active spec that has this name; None where there is none, or none that can be run."""
        row = await self._database.row(_NAMED, name=name, as_of=as_of) if name.isprintable() else None
        if row is None:
            return None
        refuse_later([row.pop("updated_at")], as_of=as_of, what=f"The spec {row['name']}", source=self.source)
        return read(**row).spec
