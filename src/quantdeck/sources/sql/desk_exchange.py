"""A desk brought into the database and out of it: all of a file or nothing, and the same file twice changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from quantdeck.connections.database import Database, Row
from quantdeck.core.clock import Now
from quantdeck.sources.sql.as_of import refuse_later
from quantdeck.sources.sql.desk_file import (
    FORMAT,
    AccountRow,
    DeskFile,
    FileProblems,
    LimitsRow,
    PositionRow,
    made_id,
)
from quantdeck.sources.sql.risk_limits import LIMITS

__all__ = ["bring_in", "take_out"]

# By table: what tells its rows apart, and what else they have.
_KEYS = {"accounts": ("account_id",), "positions": ("position_id",), "risk_limits": ("account_id", "strategy_id")}
_COLUMNS = {
    "accounts": ("currency", "total_balance", "available_balance", "margin_used", "peak_balance"),
    "positions": (
        "account_id", "symbol", "side", "size", "entry_price", "current_price", "realized_pnl", "opened_at",
        "closed_at",
    ),
    "risk_limits": LIMITS,
}  # fmt: skip
_TIMES = ("created_at", "updated_at")
_ORDER = {
    "accounts": "account_id",
    "positions": "account_id, opened_at, position_id",
    "risk_limits": "account_id, strategy_id",
}

Counts = dict[str, Counter[str]]


async def bring_in(database: Database, file: DeskFile, *, now: Now, account: str, replace: bool = False) -> Counts:
    """Write what is new or different; by table, how many rows were added, changed or left as they were.

    `account` is whose rows are that name none. Times that are left out are those of the row that is there, else `now`.
    `replace` removes the other positions of the accounts that the file names.
    """
    counts: Counts = {}
    async with database.transaction():
        bringing = _Bringing(database, now)
        for row in file.accounts:
            await bringing.account(row, row.account_id or account)
        await _check_accounts(database, file, account)
        await _check_owners(database, file, account)
        await bringing.positions({made_id(row, row.account_id or account): row for row in file.positions}, account)
        for limits in file.risk_limits:
            await bringing.limits(limits, limits.account_id or account)
        counts = bringing.counts
        if replace:
            names = {row.account_id or account for row in (*file.accounts, *file.positions)}
            counts.setdefault("positions", Counter())["removed"] += await bringing.remove_others(names)
    return counts


async def take_out(database: Database, *, as_of: Now, account: str | None, source: str) -> dict[str, Any]:
    """All that the tables hold, of one account where one is said, as a file. At a fixed clock: as it was known then."""
    told: dict[str, Any] = {"format": FORMAT, "source": source}
    async with database.snapshot():
        for table, keys in _KEYS.items():
            rows = await database.rows(
                f"SELECT {', '.join(dict.fromkeys((*keys, *_COLUMNS[table], *_TIMES)))} FROM {table}"  # noqa: S608 - our own
                " WHERE (:account IS NULL OR account_id = :account) AND (:known IS NULL OR created_at <= :known)"
                f" ORDER BY {_ORDER[table]}",
                account=account,
                known=as_of if as_of.fixed else None,
            )
            refuse_later((row["updated_at"] for row in rows), as_of=as_of, what="The desk", source=database.source)
            told[table] = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return told


class _Bringing:
    """The rows of one file on their way in."""

    def __init__(self, database: Database, now: datetime) -> None:
        self._database = database
        self._now = now
        self._positions: set[str] = set()
        self.counts: Counts = {}

    async def account(self, row: AccountRow, name: str) -> None:
        there = await self._there("accounts", account_id=name)
        total, free, used = row.total_balance, row.available_balance, row.margin_used
        if used is None:
            used = 0.0 if free is None else total - free
        peak = row.peak_balance
        if peak is None:
            peak = max(total, (there and there["peak_balance"]) or total)
        said = {
            "account_id": name, "currency": row.currency, "total_balance": total,
            "available_balance": total - used if free is None else free, "margin_used": used, "peak_balance": peak,
        }  # fmt: skip
        await self._write("accounts", said, there, row.created_at, row.updated_at)

    async def positions(self, rows: Mapping[str, PositionRow], account: str) -> None:
        """All at once: there may be a hundred thousand, and two statements for each take half a minute."""
        owners = {key: row.account_id or account for key, row in rows.items()}
        there: dict[str, Row] = {}
        for owner in sorted(set(owners.values())):
            columns = ", ".join(("position_id", *_COLUMNS["positions"], *_TIMES))
            held = await self._database.rows(f"SELECT {columns} FROM positions WHERE account_id = :a", a=owner)  # noqa: S608 - our own
            there |= {row["position_id"]: row for row in held}
        judged = [self._position(key, owners[key], row, there.get(key)) for key, row in rows.items()]
        if different := [row for row in judged if row is not None]:
            await self._database.execute_many(_upsert("positions"), different)
        self._positions |= rows.keys()

    def _position(self, key: str, account: str, row: PositionRow, there: Row | None) -> dict[str, Any] | None:
        opened_at = row.opened_at or (there and there["opened_at"]) or self._since(row.created_at, row.updated_at)
        if row.closed_at is not None and row.closed_at < opened_at:
            opened_at = row.closed_at  # it was left out, and is not known
        said = {**row.model_dump(), "position_id": key, "account_id": account, "opened_at": opened_at}
        return self._judged("positions", said, there, row.created_at, row.updated_at)

    async def limits(self, row: LimitsRow, account: str) -> None:
        said = {**row.model_dump(), "account_id": account}
        there = await self._there("risk_limits", account_id=account, strategy_id=row.strategy_id)
        await self._write("risk_limits", said, there, row.created_at, row.updated_at)

    async def remove_others(self, accounts: set[str]) -> int:
        gone: list[dict[str, Any]] = []
        for account in sorted(accounts):
            held = await self._database.rows("SELECT position_id FROM positions WHERE account_id = :a", a=account)
            gone += [{"key": row["position_id"]} for row in held if row["position_id"] not in self._positions]
        if gone:
            await self._database.execute_many("DELETE FROM positions WHERE position_id = :key", gone)
        return len(gone)

    def _since(self, created_at: datetime | None, updated_at: datetime | None) -> datetime:
        """When it became known, as far as that was said."""
        return created_at or min(self._now, updated_at or self._now)

    async def _there(self, table: str, **key: Any) -> Row | None:
        columns = ", ".join((*_COLUMNS[table], *_TIMES))
        places = " AND ".join(f"{name} = :{name}" for name in key)
        return await self._database.row(f"SELECT {columns} FROM {table} WHERE {places}", **key)  # noqa: S608 - our own

    async def _write(self, table: str, said: Mapping[str, Any], there: Row | None, *times: datetime | None) -> None:
        if (row := self._judged(table, said, there, *times)) is not None:
            await self._database.execute(_upsert(table), **row)

    def _judged(
        self,
        table: str,
        said: Mapping[str, Any],
        there: Row | None,
        created_at: datetime | None = None,
        updated_at: datetime | None = None,
    ) -> dict[str, Any] | None:
        """The row as it is to be, or None where it is so already; counted."""
        row = {name: said[name] for name in (*_KEYS[table], *_COLUMNS[table])}
        row["created_at"] = created_at or (there["created_at"] if there else self._since(None, updated_at))
        different = there is None or any(there[name] != row[name] for name in (*_COLUMNS[table], "created_at"))
        row["updated_at"] = updated_at or (
            max(self._now, row["created_at"]) if different or not there else there["updated_at"]
        )
        counted = self.counts.setdefault(table, Counter())
        if there is None:
            counted["added"] += 1
        elif different or there["updated_at"] != row["updated_at"]:
            counted["changed"] += 1
        else:
            counted["as they were"] += 1
            return None
        return row


def _upsert(table: str) -> str:
    keys, columns = _KEYS[table], (*_COLUMNS[table], *_TIMES)
    names = tuple(dict.fromkeys((*keys, *columns)))
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"  # noqa: S608 - our own
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
    )


async def _check_accounts(database: Database, file: DeskFile, account: str) -> None:
    known = {row["account_id"] for row in await database.rows("SELECT account_id FROM accounts")}
    if problems := list(_without_account(file, account, known)):
        raise FileProblems(problems[:20])


async def _check_owners(database: Database, file: DeskFile, account: str) -> None:
    """A position is one account's for good."""
    owners = {made_id(row, name): name for row in file.positions if (name := row.account_id or account)}
    if not owners:
        return
    held = await database.rows("SELECT position_id, account_id FROM positions")
    if taken := [row for row in held if owners.get(row["position_id"], row["account_id"]) != row["account_id"]]:
        raise FileProblems(
            [
                f"position {row['position_id']}: belongs to the account {row['account_id']!r}, "
                f"not to {owners[row['position_id']]!r}"
                for row in taken[:20]
            ]
        )


def _without_account(file: DeskFile, account: str, known: set[str]) -> Iterator[str]:
    parts = {"positions": file.positions, "risk_limits": file.risk_limits}
    for part, rows in parts.items():
        for number, row in enumerate(rows):  # type: ignore[var-annotated,arg-type]
            name = row.account_id or account
            if name not in known:
                yield f"{part}[{number}].account_id: there is no account {name!r}; bring it in too, under accounts"
