"""Fills in the desk's tables, in SQLite or PostgreSQL: written by whoever hears of executions."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from quantdeck.connections.database import Database
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.domain.execution import Fill
from quantdeck.settings import Settings
from quantdeck.sources.fills import Fills, NewFill

__all__ = ["DeskFills", "connect"]

MOST = 500
KEPT_FOR = timedelta(minutes=5)
_KEPT = 256

_NEWEST = """
    SELECT side, size, price, mid_price FROM fills
    WHERE symbol = :symbol AND mid_price IS NOT NULL AND filled_at <= :as_of AND created_at <= :as_of
    ORDER BY filled_at DESC, fill_id LIMIT :most
"""
_ADD = """
    INSERT INTO fills (fill_id, account_id, symbol, side, size, price, mid_price, filled_at, created_at)
    VALUES (:fill_id, :account_id, :symbol, :side, :size, :price, :mid_price, :filled_at, :created_at)
    ON CONFLICT (fill_id) DO NOTHING
"""


def connect(url: str, settings: Settings, databases: Databases) -> DeskFills:
    """The adapter. That there is no desk is found when it is asked: then nothing is learnt."""
    del url
    return DeskFills(databases.of("desk"), source="demo" if settings.is_demo else "")


class _Kept(NamedTuple):
    fills: list[Fill]
    as_of: Now
    until: float


class DeskFills(Fills):
    """See the port. What was read is kept for a while, for a model need not learn from the last fill at once."""

    def __init__(self, database: Database, source: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self.source = source or database.source
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def ping(self) -> None:
        await self._database.row("SELECT count(*) AS fills FROM fills WHERE FALSE")

    async def newest(self, symbol: str, *, as_of: Now) -> list[Fill]:
        kept = self._kept.get(symbol)
        # Never one that was read as of a later instant: it could know more.
        if kept is not None and timedelta() <= as_of - kept.as_of < KEPT_FOR and self._clock() < kept.until:
            return kept.fills
        rows = await self._database.rows(_NEWEST, symbol=symbol, as_of=as_of, most=MOST)
        fills = [
            Fill("buy" if row["side"] == "BUY" else "sell", row["size"], row["price"], row["mid_price"]) for row in rows
        ]
        self._kept[symbol] = _Kept(fills, as_of, self._clock() + KEPT_FOR.total_seconds())
        self._kept.move_to_end(symbol)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return fills

    async def add(self, fill: NewFill) -> bool:
        return bool(await self._database.execute(_ADD, **fill._asdict()))
