"""The relational databases of a process: one server for everything, or a SQLite file per group of tables."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from quantdeck.connections import extras
from quantdeck.connections.database import Database
from quantdeck.core.errors import NotConfigured
from quantdeck.settings import MisconfiguredError, Settings

__all__ = ["GROUPS", "Databases"]

SCHEMES = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}

GROUPS = ("journal", "desk", "decisions", "state")
"""Every group of migrations there is."""


class Databases:
    """The relational databases of a process: one server for everything, or a SQLite file per group."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._url = settings.database.get_secret_value()
        self._open: dict[str, Database] = {}
        self.kind = self._kind()

    def of(self, group: str) -> Database:
        """The database that holds this group of tables. Nothing is connected yet."""
        place = "" if self._url else group
        if place not in self._open:
            self._open[place] = self._make(group)
        return self._open[place]

    async def migrate(self) -> list[str]:
        """Bring every group up to date; what was applied."""
        from quantdeck.migrations import migrate  # no serving process needs it

        if self._url:
            return await migrate(self._bare(""), GROUPS)
        return [name for group in GROUPS[1:] for name in await migrate(self._bare(group), (group,))]

    def _bare(self, group: str) -> Database:
        """The database, not migrating itself when it is opened: so that what is applied can be told."""
        place = "" if self._url else group
        if place not in self._open:
            self._open[place] = self._make(group, migrating=False)
        return self._open[place]

    async def close(self) -> None:
        for database in self._open.values():
            await database.close()

    def _kind(self) -> str:
        scheme = urlsplit(self._url).scheme if self._url else "sqlite"
        if scheme not in SCHEMES:
            known = ", ".join(f"{name}://" for name in SCHEMES)
            raise MisconfiguredError(f"QUANTDECK_DATABASE begins with {scheme!r}; it may begin with {known}")
        return SCHEMES[scheme]

    def _make(self, group: str, *, migrating: bool = True) -> Database:
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
        return SQLite(self.path(group), groups=groups if migrating else ())

    def path(self, group: str) -> Path:
        """The SQLite file of a group."""
        return Path(urlsplit(self._url).path) if self._url else self._settings.home_path / f"{group}.db"

    def require(self, group: str) -> None:
        """Refuse to make up an empty world where nobody has said that there should be one."""
        if self.kind == "sqlite" and not self.path(group).exists():
            raise NotConfigured(
                "No database connection is configured. Set QUANTDECK_DATABASE to a PostgreSQL or SQLite URL, "
                "make an empty SQLite home with `quantdeck migrate`, or a demo world with `quantdeck demo`",
                source=self.kind,
                setting="QUANTDECK_DATABASE",
            )
