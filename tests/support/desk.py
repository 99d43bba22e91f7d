"""Rows of the desk's tables, with everything said that a test does not care about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from quantdeck.connections.database import Database

__all__ = [
    "LATER",
    "NOON",
    "add_account",
    "add_implementation",
    "add_limits",
    "add_position",
    "add_signal",
    "add_spec",
    "uid",
]

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
"""The instant at which these tests ask."""
LATER = NOON + timedelta(seconds=1)
LONG_AGO = NOON - timedelta(days=100)


def uid(name: str) -> str:
    """The same UUID for the same name, in an order that tests can rely on only by asking."""
    return str(uuid5(NAMESPACE_URL, name))


async def add_spec(database: Database, name: str = "SMA_RSI", **said: Any) -> str:
    """A spec, and its id."""
    row = {
        "spec_id": uid(name), "name": name, "indicators": [], "entry_conditions": [], "exit_conditions": [],
        "parameters": [], "source": "CANONICAL", "is_active": True, "created_at": LONG_AGO, "updated_at": LONG_AGO,
        **said,
    }  # fmt: skip
    await _insert(database, "strategy_specs", row)
    return str(row["spec_id"])


async def add_implementation(database: Database, name: str, spec_id: str, **said: Any) -> str:
    """An implementation that may be traded, and its id."""
    row = {
        "impl_id": uid(name), "spec_id": spec_id, "symbol": "BTC/USD", "parameters": {"period": 14},
        "status": "VALIDATED", "created_at": LONG_AGO, "updated_at": LONG_AGO, **said,
    }  # fmt: skip
    await _insert(database, "strategy_implementations", row)
    return str(row["impl_id"])


async def add_signal(database: Database, name: str, impl_id: str, action: str = "BUY", **said: Any) -> None:
    """A signal of an hour ago."""
    at = said.get("signal_timestamp", NOON - timedelta(hours=1))
    row = {
        "signal_id": uid(f"signal {name}"), "impl_id": impl_id, "symbol": "BTC/USD", "action": action,
        "strength": 0.8, "signal_timestamp": at, "created_at": at, **said,
    }  # fmt: skip
    await _insert(database, "implementation_signals", row)


async def add_account(database: Database, account_id: str = "default", **said: Any) -> None:
    """An account with a hundred thousand, most of it free."""
    row = {
        "account_id": account_id, "currency": "USD", "total_balance": 100_000.0, "available_balance": 80_000.0,
        "margin_used": 20_000.0, "peak_balance": 100_000.0, "created_at": LONG_AGO, "updated_at": LONG_AGO, **said,
    }  # fmt: skip
    await _insert(database, "accounts", row)


async def add_position(database: Database, name: str, symbol: str = "BTC/USD", **said: Any) -> str:
    """A position of a thousand that is open, and its id."""
    row = {
        "position_id": uid(f"position {name}"), "account_id": "default", "symbol": symbol, "side": "LONG", "size": 2.0,
        "entry_price": 500.0, "current_price": 500.0, "realized_pnl": None, "opened_at": LONG_AGO, "closed_at": None,
        "created_at": LONG_AGO, "updated_at": LONG_AGO, **said,
    }  # fmt: skip
    await _insert(database, "positions", row)
    return str(row["position_id"])


async def add_limits(database: Database, account_id: str = "default", **said: Any) -> None:
    """Limits of an account: only those that are said."""
    await _insert(
        database, "risk_limits", {"account_id": account_id, "created_at": LONG_AGO, "updated_at": LONG_AGO, **said}
    )


async def _insert(database: Database, table: str, row: dict[str, Any]) -> None:
    places = ", ".join(f":{column}" for column in row)
    await database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", **row)
