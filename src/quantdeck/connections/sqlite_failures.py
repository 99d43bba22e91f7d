"""SQLite's failures in our words. The low byte of its code is the kind, the rest says more."""

from __future__ import annotations

import errno
import sqlite3

from quantdeck.core.errors import Busy, QueryFailed, SourceError, Unreachable

__all__ = ["LOCKED", "SOURCE", "ReadOnly", "busy", "code", "in_our_words", "read_only"]

SOURCE = "sqlite"


class ReadOnly(QueryFailed):
    """The file can be read perhaps, but not written."""


LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_RULES = {
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: "unique",
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: "unique",
    sqlite3.SQLITE_CONSTRAINT_ROWID: "unique",
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: "foreign_key",
    sqlite3.SQLITE_CONSTRAINT_CHECK: "check",
    sqlite3.SQLITE_CONSTRAINT_NOTNULL: "not_null",
}
_READ_ONLY = "The database file may not be written."
_UNOPENED = "No connection to the database: its file cannot be opened."
_FULL = "The disk of the database is full."
_SCHEMA = "A table or column is missing: the database's schema is not this program's. Run `quantdeck migrate`."
_KINDS: dict[int, tuple[type[SourceError], str]] = {
    sqlite3.SQLITE_READONLY: (ReadOnly, _READ_ONLY),
    sqlite3.SQLITE_PERM: (ReadOnly, _READ_ONLY),
    sqlite3.SQLITE_AUTH: (ReadOnly, _READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: (Unreachable, _UNOPENED),
    sqlite3.SQLITE_CORRUPT: (QueryFailed, "The database file is damaged; restore it from a copy."),
    sqlite3.SQLITE_NOTADB: (QueryFailed, "The database file is damaged, or no database at all."),
    sqlite3.SQLITE_FULL: (QueryFailed, _FULL),
    sqlite3.SQLITE_IOERR: (QueryFailed, "The disk of the database failed to read or write."),
    sqlite3.SQLITE_TOOBIG: (QueryFailed, "A value is too large to store."),
}
_FILE_KINDS: dict[int | None, tuple[type[SourceError], str]] = {
    errno.EACCES: (ReadOnly, _READ_ONLY),
    errno.EPERM: (ReadOnly, _READ_ONLY),
    errno.EROFS: (ReadOnly, _READ_ONLY),
    errno.ENOSPC: (QueryFailed, _FULL),
    errno.EDQUOT: (QueryFailed, _FULL),
}


def code(e: BaseException) -> int:
    return int(getattr(e, "sqlite_errorcode", 0)) & 0xFF


def busy() -> Busy:
    return Busy("The database is busy with other work; try again.", source=SOURCE)


def read_only() -> ReadOnly:
    return ReadOnly(_READ_ONLY, source=SOURCE)


def in_our_words(e: Exception) -> SourceError:
    kind = code(e)
    if kind == sqlite3.SQLITE_CONSTRAINT:
        rule = _RULES.get(getattr(e, "sqlite_errorcode", 0), "other")
        return QueryFailed("The values break a rule of the table.", source=SOURCE, rule=rule)
    if isinstance(e, OSError):
        error, sentence = _FILE_KINDS.get(e.errno, (Unreachable, _UNOPENED))
    elif isinstance(e, (UnicodeEncodeError, OverflowError)):
        error, sentence = QueryFailed, "A value does not fit the database's types."
    elif str(e).startswith("no such"):
        error, sentence = QueryFailed, _SCHEMA
    else:
        error, sentence = _KINDS.get(kind, (QueryFailed, "The database refused the query."))
    return error(sentence, source=SOURCE)
