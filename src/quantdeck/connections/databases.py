"""The relational databases of a process: one server for everything, or a SQLite file per group of tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

from quantdeck.connections import extras
from quantdeck.connections.database import Database
from quantdeck.connections.urls import address
from quantdeck.core.errors import NotConfigured, Unreachable
from quantdeck.settings import MisconfiguredError, Settings

__all__ = ["GROUPS", "Databases"]

GROUPS = ("journal", "desk", "decisions", "state")
"""Every group of migrations there is."""

DURABLE = frozenset({"decisions"})
"""Groups of which not even a power cut may take the last commits; any other survives the end of its process."""

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

    @property
    def kind(self) -> str:
        """The engine: `sqlite` or `postgresql`."""
        return self._address.kind

    def of(self, group: str) -> Database:
        """The database that holds this group of tables. Nothing is connected yet."""
        place = "" if self._url else group
        if place not in self._open:
            self._open[place] = self._make(group)
        return self._open[place]

    async def migrate(self) -> list[str]:
        """Bring every group up to date, making what is not there; what was applied."""
        if self._url:
            return await self._migrated("", GROUPS)
        return [name for group in GROUPS[1:] for name in await self._migrated(group, (group,))]

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
        if self.kind == "postgresql":
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

        groups = GROUPS if self._url else ("journal", group)
        made = migrating or (group in _MADE_ON_USE and not self._url)
        return SQLite(
            self.path(group),
            groups=() if migrating else groups,
            synchronous=self.synchronous(group),
            require=None if made else partial(self.require, group),
        )

    def path(self, group: str) -> Path:
        """The SQLite file of a group."""
        return self._address.path or self._settings.home_path / f"{group}.db"

    def synchronous(self, group: str) -> Literal["NORMAL", "FULL"]:
        """How SQLite writes a group to disk. One file for all is as durable as its most durable group."""
        return "FULL" if self._url or group in DURABLE else "NORMAL"

    def require(self, group: str) -> None:
        """Refuse to make up an empty world where nobody has said that there should be one.

        And a world that became another kind of world while we run: answers would name the wrong source.
        """
        if self.kind != "sqlite":
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


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # as far as we may see; opening it will tell
    return True
