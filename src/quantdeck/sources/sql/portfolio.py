"""What accounts hold, have and may risk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from quantdeck.connections.database import Database, Row
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.consensus import CURRENT_FOR
from quantdeck.domain.exact import total
from quantdeck.domain.holdings import Holding, in_currency
from quantdeck.domain.risk import Account, Limits
from quantdeck.settings import Risk
from quantdeck.sources.sql.as_of import refuse_later
from quantdeck.sources.sql.risk_limits import LIMITS, limits

__all__ = ["Balance", "Book", "Portfolio", "Position"]

_KNOWN = "p.account_id = :account AND p.created_at <= :as_of AND p.opened_at <= :as_of"

# Two halves, because an index finds each of them at once and their OR not at all.
_OPEN = f"""
    SELECT p.* FROM positions p WHERE {_KNOWN} AND p.closed_at IS NULL
    UNION ALL SELECT p.* FROM positions p WHERE {_KNOWN} AND p.closed_at > :as_of
"""  # noqa: S608 - put together from the literals of this module

_HOLDING = "p.symbol, p.side, p.size, p.entry_price, p.current_price"

# One statement sees one moment on either engine, and a page past the end still tells how many there are.
_POSITIONS = f"""
    WITH held AS ({_OPEN}), asked AS (SELECT * FROM held WHERE :symbol IS NULL OR symbol = :symbol)
    SELECT n.total, {_HOLDING}, p.opened_at
    FROM (SELECT count(*) AS total FROM asked) n
    LEFT JOIN (SELECT * FROM asked ORDER BY opened_at DESC, position_id LIMIT :limit OFFSET :offset) p ON TRUE
    ORDER BY p.opened_at DESC, p.position_id
"""  # noqa: S608 - likewise

_BALANCE = f"""
    SELECT a.currency, a.total_balance, a.available_balance, a.margin_used, {_HOLDING}
    FROM accounts a LEFT JOIN ({_OPEN}) p ON TRUE
    WHERE a.account_id = :account AND a.created_at <= :as_of
"""  # noqa: S608 - likewise

# With what was closed today, for it counts in the day's loss. The last price told comes first.
_BOOK = f"""
    SELECT a.currency, a.total_balance, a.available_balance, a.peak_balance,
        l.account_id IS NOT NULL AS "is_limited [BOOLEAN]", {", ".join(f"l.{name}" for name in LIMITS)},
        {_HOLDING}, p.realized_pnl, p.opened_at >= :today AS "is_of_today [BOOLEAN]",
        p.closed_at IS NULL OR p.closed_at > :as_of AS "is_open [BOOLEAN]",
        (
            SELECT s.price FROM implementation_signals s
            WHERE s.symbol = :symbol AND s.price IS NOT NULL AND s.created_at <= :as_of
              AND s.signal_timestamp <= :as_of AND s.signal_timestamp >= :since AND s.signal_type <> 'backtest'
            ORDER BY s.signal_timestamp DESC, s.created_at DESC, s.signal_id LIMIT 1
        ) AS last_price
    FROM accounts a
    LEFT JOIN risk_limits l ON l.account_id = a.account_id AND l.strategy_id = :strategy AND l.created_at <= :as_of
    LEFT JOIN (
        SELECT p.* FROM positions p WHERE {_KNOWN} AND p.closed_at IS NULL
        UNION ALL SELECT p.* FROM positions p WHERE {_KNOWN} AND p.closed_at >= :today
    ) p ON TRUE
    WHERE a.account_id = :account AND a.created_at <= :as_of
    ORDER BY p.updated_at DESC, p.position_id
"""  # noqa: S608 - likewise

_CHANGED = """
    SELECT
        (SELECT max(updated_at) FROM accounts WHERE account_id = :account AND created_at <= :as_of)
            AS "account [TIMESTAMP]",
        (SELECT max(updated_at) FROM risk_limits WHERE account_id = :account AND created_at <= :as_of)
            AS "limits [TIMESTAMP]",
        (
            SELECT max(updated_at) FROM positions
            WHERE account_id = :account AND created_at <= :as_of AND opened_at <= :as_of
        ) AS "positions [TIMESTAMP]"
"""


# Of what a check of limits asks here; positions have a source of their own there.
_REVISION = """
    SELECT count(*) AS accounts, max(updated_at) AS "latest [TIMESTAMP]", sum(total_balance) AS balance,
        (SELECT count(*) FROM risk_limits) AS limits,
        (SELECT max(updated_at) FROM risk_limits) AS "limited [TIMESTAMP]"
    FROM accounts
"""


class Position(NamedTuple):
    """An open position. Its price, and so its gain, can be unknown."""

    holding: Holding
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account has. The gain of its open positions is None where one of them cannot be told."""

    total: float
    available: float
    margin_used: float
    unrealized_pnl: float | None


@dataclass(frozen=True, slots=True)
class Book:
    """All that a trade is held against, of one moment. `prices` are the symbol's last ones, the better source first.

    Where nothing is stored it is not `limited`, and its limits are those of the settings.
    """

    account: Account
    limits: Limits
    limited: bool
    prices: tuple[tuple[float, str], ...]


class Portfolio(Source):
    """Read only. Each read is of one moment, and as of an instant; at a fixed one what was changed later is refused."""

    group = "desk"
    takes = ("account", "risk")

    def __init__(
        self, database: Database, source: str = "", *, account: str = "default", risk: Risk | None = None
    ) -> None:
        """`account` is whose it is where a caller has none; `risk` the limits of one for which none are stored."""
        self._database = database
        self.source = source or database.source
        self.account = account
        self._limits = Limits(**(risk or Risk()).model_dump())

    async def ping(self) -> None:
        """Return if these tables can be read."""
        await self._database.row("SELECT count(*) AS positions FROM positions WHERE FALSE")

    async def positions(
        self, account: str, symbol: str | None, *, offset: int, limit: int, as_of: Now
    ) -> tuple[list[Position], int]:
        """Open positions, of one symbol where one is said, the newest first, and how many there are in all."""
        async with self._unchanged(account, as_of):
            rows = await self._database.rows(
                _POSITIONS, account=account, symbol=symbol, as_of=as_of, limit=limit, offset=offset
            )
        found = [Position(_holding(row), row["opened_at"]) for row in rows if row["symbol"] is not None]
        return found, int(rows[0]["total"])

    async def balance(self, account: str, *, as_of: Now) -> Balance | None:
        """What the account has; None where there is none of this name."""
        async with self._unchanged(account, as_of):
            rows = await self._database.rows(_BALANCE, account=account, as_of=as_of)
        if not rows:
            return None
        has = rows[0]
        gains = [_holding(row).gained_in(has["currency"]) for row in rows if row["symbol"] is not None]
        known = [gain for gain in gains if gain is not None]
        gained = total(known) if len(known) == len(gains) else None
        return Balance(has["total_balance"], has["available_balance"], has["margin_used"], gained)

    async def revision(self) -> Any:
        row = await self._database.row(_REVISION)
        return None if row is None else list(row.values())

    async def book(self, account: str, symbol: str, *, strategy: str = "", as_of: Now) -> Book | None:
        """What a trade in a symbol is held against, by a strategy or by hand; None where there is no such account."""
        midnight = as_of.replace(hour=0, minute=0, second=0, microsecond=0)
        async with self._unchanged(account, as_of):
            rows = await self._database.rows(
                _BOOK,
                account=account,
                symbol=symbol,
                strategy=strategy,
                as_of=as_of,
                today=midnight,
                since=as_of - CURRENT_FOR,
            )
        return _book(rows, symbol, self._limits) if rows else None

    @asynccontextmanager
    async def _unchanged(self, account: str, as_of: Now) -> AsyncIterator[None]:
        """At a fixed instant, refuse what was changed later; in the same snapshot as what is read inside."""
        if not as_of.fixed:
            yield
            return
        async with self._database.snapshot():
            (changed,) = await self._database.rows(_CHANGED, account=account, as_of=as_of)
            refuse_later(changed.values(), as_of=as_of, what=f"The portfolio of {account}", source=self.source)
            yield


_columns = itemgetter("symbol", "side", "size", "entry_price", "current_price")


def _holding(row: Row) -> Holding:
    return Holding(*_columns(row))


def _book(rows: list[Row], symbol: str, otherwise: Limits) -> Book:
    has = rows[0]
    held = [(row, _holding(row)) for row in rows if row["symbol"] is not None]
    still = [(row, holding) for row, holding in held if row["is_open"]]
    account = Account(
        currency=has["currency"],
        equity=has["total_balance"],
        available=has["available_balance"],
        peak=has["total_balance"] if has["peak_balance"] is None else has["peak_balance"],
        lost_today=-total(_earned_today(held, has["currency"])),
        holdings=tuple(holding for _, holding in still),
    )
    marked = [holding.price for _, holding in still if holding.symbol == symbol and holding.price is not None]
    prices = [(price, "the last price of the open position") for price in marked[:1]]
    if has["last_price"] is not None:
        prices.append((has["last_price"], "the price of the last signal"))
    limited = bool(has["is_limited"])
    return Book(account, limits(has) if limited else otherwise, limited, tuple(prices))


def _earned_today(held: list[tuple[Row, Holding]], currency: str) -> list[float]:
    """What was closed today brought in, and what the positions opened today have gained so far."""
    earned: list[Any] = []
    for row, holding in held:
        if row["realized_pnl"] is not None and (row["is_of_today"] or not row["is_open"]):
            price = holding.price or holding.entry_price
            earned.append(in_currency(row["realized_pnl"], holding.symbol, price, currency))
        if row["is_of_today"] and row["is_open"]:
            earned.append(holding.gained_in(currency))
    return [amount for amount in earned if amount is not None]
