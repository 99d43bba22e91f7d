"""The relational databases of a process: one server for everything, or a SQLite file per group of tables."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Literal

from quantdeck.connections import extras
from quantdeck.connections.database import Database
from quantdeck.connections.urls import address
from quantdeck.core.errors import NotConfigured, Unreachable
from quantdeck.settings import MisconfiguredError, Settings

__all__ = ["GROUPS", "MARKET", "Databases"]

GROUPS = ("journal", "desk", "decisions", "state")
"""Every group of relational tables; with a URL they are all in one place."""

MARKET = "market"
"""The group of the embedded bars: a SQLite file of the home, whatever QUANTDECK_DATABASE says."""

DURABLE = frozenset({"decisions"})
"""Groups of which not even a power cut may take the last commits; any other survives the end of its process."""

_LARGE_PAGE = 32_768
"""For rows of tens of kilobytes, of which one is two pages: read in half the time that pages of 16 KiB take."""

_MADE_ON_USE = frozenset({"state"})
"""Groups whose file in the home appears when it is first used; any other is made by a command."""


class Databases:
    """The relational databases of a process: one server for everything, or a SQLite file per group."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._url = settings.database.get_secret_value()
        self._address = address(self._url)
        self._open: dict[str, Database] = {}
        self._worlds: dict[str, bool] = {}  # of the groups that were found, whether they were a demo's
        if self._url and settings.is_demo:
            raise MisconfiguredError(
                f"{settings.home_path} is a demo world and QUANTDECK_DATABASE names something real; unset one of "
                "them, or point QUANTDECK_HOME elsewhere, so that nobody takes one for the other"
            )
        if self._address.path is not None and _is_of_a_demo(self._address.path):
            raise MisconfiguredError(
                "QUANTDECK_DATABASE names a file of a demo world, which would be answered as real; unset it, and point "
                "QUANTDECK_HOME at that world"
            )

    @property
    def kind(self) -> str:
        """The engine: `sqlite` or `postgresql`."""
        return self._address.kind

    def kind_of(self, group: str) -> str:
        """The engine that has this group."""
        return "sqlite" if group == MARKET else self.kind

    def _shared(self, group: str) -> bool:
        return bool(self._url) and group != MARKET

    def of(self, group: str) -> Database:
        """The database that holds this group of tables. Nothing is connected yet."""
        place = "" if self._shared(group) else group
        if place not in self._open:
            self._open[place] = self._make(group)
        return self._open[place]

    async def migrate(self) -> list[str]:
        """Bring every group up to date, making what is not there, but for the bars; what was applied."""
        if self._url:
            applied = await self._migrated("", GROUPS)
        else:
            applied = [name for group in GROUPS[1:] for name in await self._migrated(group, (group,))]
        if _is_there(self.path(MARKET)):
            applied += await self._migrated(MARKET, (MARKET,))
        return applied

    async def make_market(self) -> None:
        """Make the file of the embedded bars, if it is not there: whoever writes bars wants one."""
        await self._migrated(MARKET, (MARKET,))

    async def make_desk(self) -> None:
        """Make the home's files as `migrate` does, if it has no desk: whoever brings one in wants it there."""
        demo = self._settings.is_demo or self._settings.is_unfinished_demo
        if not (self._url or demo or _is_there(self.path("desk"))):
            await self.migrate()

    async def _migrated(self, place: str, groups: tuple[str, ...]) -> list[str]:
        from quantdeck.migrations import migrate  # no serving process needs it

        database = self._make(place, migrating=True)
        try:
            return await migrate(database, groups)
        finally:
            await database.close()

    async def close(self) -> None:
        for database in self._open.values():
            await database.close()

    def _make(self, group: str, *, migrating: bool = False) -> Database:
        if self.kind_of(group) == "postgresql":
            driver = extras.load("quantdeck.connections.postgresql", extra="postgresql")
            pool = self._settings.postgresql
            database: Database = driver.PostgreSQL(
                self._url,
                min_size=pool.min_connections,
                max_size=pool.max_connections,
                idle_s=pool.idle_s,
                connect_s=pool.connect_s,
                statement_cache_size=pool.statement_cache_size,
            )
            return database
        from quantdeck.connections.sqlite import SQLite  # only where it is used

        groups = GROUPS if self._shared(group) else ("journal", group)
        made = migrating or (group in _MADE_ON_USE and not self._url)
        return SQLite(
            self.path(group),
            groups=() if migrating else groups,
            synchronous=self.synchronous(group),
            require=None if made else partial(self.require, group),
            page_bytes=_LARGE_PAGE if group == MARKET else None,
        )

    def path(self, group: str) -> Path:
        """The SQLite file of a group."""
        shared = self._address.path if self._shared(group) else None
        return shared or self._settings.home_path / f"{group}.db"

    def synchronous(self, group: str) -> Literal["NORMAL", "FULL"]:
        """How SQLite writes a group to disk. One file for all is as durable as its most durable group."""
        return "FULL" if self._shared(group) or group in DURABLE else "NORMAL"

    def require(self, group: str) -> None:
        """Refuse to make up an empty world where nobody has said that there should be one.

        And a world that became another kind of world while we run: answers would name the wrong source.
        """
        if self.kind_of(group) != "sqlite":
            return
        if self._settings.is_unfinished_demo:
            raise Unreachable(
                "No connection to the database: its demo world is not finished. Where nobody is making it just now, "
                "run `quantdeck demo` again",
                source=self.kind,
            )
        if not _is_there(self.path(group)):
            raise self._missing(group)
        demo = self._settings.is_demo
        if self._worlds.setdefault(group, demo) is not demo:
            raise Unreachable(
                "No connection to the database: its home was exchanged, a demo world and a real one for each other. "
                "Restart this server",
                source=self.kind,
            )

    def _missing(self, group: str) -> NotConfigured | Unreachable:
        if group == MARKET:
            return self._no_bars()
        if self._url:
            return Unreachable(
                "No connection to the database: the SQLite file that QUANTDECK_DATABASE names is missing. Make it with "
                "`quantdeck migrate`, or correct the path",
                source=self.kind,
            )
        if group in self._worlds:
            return Unreachable(
                "No connection to the database: its file was removed while this server ran. Restore it, or make it "
                "anew with `quantdeck migrate` or `quantdeck demo`",
                source=self.kind,
            )
        return NotConfigured(
            "No database connection is configured. Set QUANTDECK_DATABASE to a PostgreSQL or SQLite URL, "
            "make an empty SQLite home with `quantdeck migrate`, or a demo world with `quantdeck demo`",
            source=self.kind,
            setting="QUANTDECK_DATABASE",
        )

    def _no_bars(self) -> NotConfigured | Unreachable:
        if MARKET in self._worlds:
            return Unreachable(
                "No connection to the bars: their file, market.db, was removed while this server ran. Restore it, or "
                "make it anew with `quantdeck import candles`",
                source="sqlite",
            )
        return NotConfigured(
            "No source of bars is configured. Set QUANTDECK_CANDLES to the URL of one, put your own into this home "
            "with `quantdeck import candles`, or make a demo world with `quantdeck demo`",
            source="sqlite",
            setting="QUANTDECK_CANDLES",
        )


def _is_of_a_demo(path: Path) -> bool:
    """Whether this file lies in a demo world's home, by whatever link it was reached."""
    return Settings(home=Path(os.path.realpath(path)).parent).is_demo


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # as far as we may see; opening it will tell
    return True
