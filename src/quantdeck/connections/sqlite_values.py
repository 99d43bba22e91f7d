"""Values as SQLite keeps them: what a driver of five types is given and what is made of its answers."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import Any

from quantdeck.connections.database import document, moment
from quantdeck.connections.sqlite_failures import SOURCE
from quantdeck.connections.statements import Json, checked

__all__ = ["bound"]


def _stored(value: datetime) -> str:
    """Fixed width and UTC, so that the order of the texts is the order of the times."""
    if value.tzinfo is not UTC:
        value = value.astimezone(UTC)
    return value.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _read_timestamp(stored: bytes) -> datetime | None:
    return moment(stored.decode())


def _read_boolean(stored: bytes) -> bool:
    return stored != b"0"


# The registry is the process's, not a connection's; only connections that ask for types look at it.
sqlite3.register_converter("TIMESTAMP", _read_timestamp)
sqlite3.register_converter("BOOLEAN", _read_boolean)
sqlite3.register_converter("JSON", document)


def bound(value: Any) -> Any:
    """The value as the driver takes it."""
    fit = checked(value, SOURCE)
    if isinstance(fit, datetime):
        return _stored(fit)
    return fit.decode() if isinstance(fit, Json) else fit
