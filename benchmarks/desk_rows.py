"""A large desk: rows that are always the same, but for their times, which end now."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from quantdeck.connections.database import Database
from quantdeck.connections.databases import Databases

SPECS, IMPLEMENTATIONS, SIGNALS, DECISIONS = 400, 20_000, 200_000, 50_000
POSITIONS, CLOSED = 40, 20_000
SYMBOLS = tuple(f"C{number:02}/USD" for number in range(20))
SYMBOL, ACCOUNT = SYMBOLS[0], "default"
BATCH = 20_000

Row = dict[str, Any]


def uid(kind: str, number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"{kind} {number}"))


SPEC, STRATEGY = uid("spec", 0), uid("implementation", 0)


async def fill(databases: Databases) -> None:
    """All tables of the four servers."""
    random, now = Random(7), datetime.now(UTC)
    desk, decisions = databases.of("desk"), databases.of("decisions")
    long_ago = now - timedelta(days=300)
    await _insert(desk, "strategy_specs", (_spec(number, long_ago) for number in range(SPECS)))
    implementations = (_implementation(number, random, long_ago) for number in range(IMPLEMENTATIONS))
    await _insert(desk, "strategy_implementations", implementations)
    await _insert(desk, "implementation_signals", (_signal(number, random, now) for number in range(SIGNALS)))
    await _insert(desk, "accounts", iter([_account(now)]))
    await _insert(desk, "positions", (_position(number, random, now) for number in range(POSITIONS + CLOSED)))
    await _insert(desk, "risk_limits", iter([_limits(now)]))
    await _insert(decisions, "agent_decisions", (_decision(number, random, now) for number in range(DECISIONS)))


def _spec(number: int, at: datetime) -> Row:
    other = {"indicator": "close", "params": {"other": "sma"}}
    lists: Row = {
        "indicators": [{"id": "sma", "type": "SMA", "input": "close", "params": {"period": "${period}"}}],
        "entry_conditions": [{"type": "OVER", **other}],
        "exit_conditions": [{"type": "UNDER", **other}],
        "parameters": [{"name": "period", "type": "INTEGER", "min": 5, "max": 50, "defaultValue": 20}],
    }
    return {
        "spec_id": uid("spec", number), "name": f"SPEC_{number}", **lists, "source": "CANONICAL", "is_active": True,
        "created_at": at, "updated_at": at,
    }  # fmt: skip


def _implementation(number: int, random: Random, at: datetime) -> Row:
    return {
        "impl_id": uid("implementation", number), "spec_id": uid("spec", number % SPECS),
        "symbol": SYMBOLS[number % len(SYMBOLS)], "parameters": {"period": 5 + number % 50},
        "status": random.choice(("VALIDATED", "DEPLOYED", "CANDIDATE", "RETIRED")),
        "forward_sharpe": random.gauss(0.5, 1), "forward_accuracy": random.random(), "created_at": at,
        "updated_at": at,
    }  # fmt: skip


def _signal(number: int, random: Random, now: datetime) -> Row:
    at = now - timedelta(minutes=random.uniform(1, 30 * 24 * 60))
    which = number % IMPLEMENTATIONS
    if number < IMPLEMENTATIONS:
        at = now - timedelta(minutes=random.uniform(1, 600))  # so that everyone has something current
    return {
        "signal_id": uid("signal", number), "impl_id": uid("implementation", which),
        "symbol": SYMBOLS[which % len(SYMBOLS)], "action": random.choice(("BUY", "SELL", "HOLD")),
        "strength": random.random(), "price": 100.0, "signal_timestamp": at, "created_at": at,
    }  # fmt: skip


def _account(now: datetime) -> Row:
    return {
        "account_id": ACCOUNT, "total_balance": 1e6, "available_balance": 8e5, "margin_used": 2e5, "peak_balance": 1e6,
        "created_at": now - timedelta(days=300), "updated_at": now,
    }  # fmt: skip


def _position(number: int, random: Random, now: datetime) -> Row:
    return {
        "position_id": uid("position", number), "account_id": ACCOUNT, "symbol": SYMBOLS[number % len(SYMBOLS)],
        "side": "LONG", "size": 1.0, "entry_price": 100.0, "current_price": 100 + random.gauss(0, 1),
        "opened_at": now - timedelta(hours=number + 1), "closed_at": _closed_at(number, now),
        "created_at": now - timedelta(hours=number + 1), "updated_at": now,
    }  # fmt: skip


def _closed_at(number: int, now: datetime) -> datetime | None:
    return None if number < POSITIONS else now - timedelta(hours=number)


def _limits(now: datetime) -> Row:
    return {
        "account_id": ACCOUNT, "max_position_pct": 0.1, "max_exposure_pct": 0.5, "max_open_positions": 100,
        "max_daily_loss_pct": 0.05, "max_drawdown_pct": 0.2, "created_at": now, "updated_at": now,
    }  # fmt: skip


def _decision(number: int, random: Random, now: datetime) -> Row:
    return {
        "decision_id": uid("decision", number), "symbol": SYMBOLS[number % len(SYMBOLS)],
        "action": random.choice(("BUY", "SELL", "HOLD")), "confidence": random.random(),
        "opportunity_score": random.uniform(0, 100), "reasoning": "Because the trend and the spread agree. " * 4,
        "tool_calls": {"calls": []}, "caller": "bench", "created_at": now - timedelta(minutes=number),
    }  # fmt: skip


async def _insert(database: Database, table: str, rows: Iterator[Row]) -> None:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            await _write(database, table, batch)
            batch = []
    if batch:
        await _write(database, table, batch)


async def _write(database: Database, table: str, batch: list[Row]) -> None:
    columns = ", ".join(batch[0])
    places = ", ".join(f":{column}" for column in batch[0])
    await database.execute_many(f"INSERT INTO {table} ({columns}) VALUES ({places})", batch)  # noqa: S608 - our own names
