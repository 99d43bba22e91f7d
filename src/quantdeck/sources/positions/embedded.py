"""The desk's own positions, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from quantdeck.connections.database import Database
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.domain.exact import total
from quantdeck.settings import Settings
from quantdeck.sources.positions import Positions, Tracked
from quantdeck.sources.sql.as_of import refuse_later

__all__ = ["DeskPositions", "connect"]

_KNOWN = "account_id = :account AND created_at <= :as_of AND opened_at <= :as_of"
_HELD = f"""
    SELECT symbol, side, size, entry_price, current_price, updated_at FROM positions
    WHERE {_KNOWN} AND closed_at IS NULL
    UNION ALL
    SELECT symbol, side, size, entry_price, current_price, updated_at FROM positions
    WHERE {_KNOWN} AND closed_at > :as_of
    ORDER BY symbol, updated_at DESC
"""  # noqa: S608 - put together from the literals of this module
_CHANGED = """
    SELECT max(updated_at) AS "latest [TIMESTAMP]" FROM positions
    WHERE account_id = :account AND created_at <= :as_of AND opened_at <= :as_of
"""

# Not the time of the last change alone: whoever writes says that himself, and may say an old one.
_REVISION = """
    SELECT count(*) AS positions, max(updated_at) AS "latest [TIMESTAMP]", sum(size) AS size,
        sum(CASE WHEN side = 'LONG' THEN size ELSE 0.0 END) AS long, sum(current_price) AS price
    FROM positions WHERE closed_at IS NULL
"""


def connect(url: str, settings: Settings, databases: Databases) -> DeskPositions:
    """The adapter, over the database that has the desk."""
    del url
    databases.require("desk")
    return DeskPositions(databases.of("desk"), source="demo" if settings.is_demo else "")


class DeskPositions(Positions):
    """See the port."""

    def __init__(self, database: Database, *, source: str = "") -> None:
        self._database = database
        self.source = source or database.source

    async def ping(self) -> None:
        await self._database.row("SELECT count(*) AS positions FROM positions WHERE FALSE")

    async def revision(self) -> Any:
        row = await self._database.row(_REVISION)
        return None if row is None else list(row.values())

    async def held(self, account: str, *, as_of: Now) -> list[Tracked]:
        if not as_of.fixed:
            return await self._held(account, as_of)
        async with self._database.snapshot():
            changed = await self._database.row(_CHANGED, account=account, as_of=as_of)
            assert changed is not None
            what = f"The positions of {account}"
            refuse_later([changed["latest"]], as_of=as_of, what=what, source=self.source)
            return await self._held(account, as_of)

    async def _held(self, account: str, as_of: Now) -> list[Tracked]:
        lots: dict[str, list[Any]] = defaultdict(list)
        for row in await self._database.rows(_HELD, account=account, as_of=as_of):
            lots[row["symbol"]].append(row)
        return [_tracked(symbol, rows) for symbol, rows in lots.items()]


def _tracked(symbol: str, rows: list[Any]) -> Tracked:
    """All lots of a symbol as one, at the price that was told last; else at the one it was opened at."""
    quantity = total(row["size"] if row["side"] == "LONG" else -row["size"] for row in rows)
    told = [row["current_price"] for row in rows if row["current_price"] is not None]
    return Tracked(symbol, quantity, [*told, rows[0]["entry_price"]][0])
