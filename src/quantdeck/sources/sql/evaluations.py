"""Strategies that are followed forward: which, up to where, and what came of them.

What is stored of one implementation is stored in one transaction, and only by who found it as it still is. So however
many follow it at once, or are ended in the middle, each signal is there once and none is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from quantdeck.connections.database import Database, Row
from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.sources.sql.as_of import canonical_uuid
from quantdeck.sources.sql.performance import SAVE, Measured, row_of

__all__ = ["ACTIONS", "Evaluations", "Followed", "Forward", "Given", "Progress", "signal_row"]

_PARTS = ("indicators", "entry_conditions", "exit_conditions", "parameters")

_ALL = f"""
    SELECT i.impl_id, i.symbol, i.parameters AS numbers, i.created_at, i.updated_at, s.updated_at AS spec_updated_at,
           s.name, {", ".join(f"s.{part}" for part in _PARTS)}, e.timeframe, e.began_at, e.seen_until, e.standing
    FROM strategy_implementations i JOIN strategy_specs s ON s.spec_id = i.spec_id
    LEFT JOIN strategy_evaluations e ON e.impl_id = i.impl_id
    WHERE i.status IN ('VALIDATED', 'DEPLOYED') AND s.is_active AND i.created_at <= :as_of AND s.created_at <= :as_of
      AND (:symbol IS NULL OR i.symbol = :symbol) AND (:name IS NULL OR s.name = :name) {{of_id}}
    ORDER BY i.symbol, s.name, i.impl_id
"""  # noqa: S608 - put together from the literals of this module

_BEGIN = """
    INSERT INTO strategy_evaluations (impl_id, timeframe, began_at, seen_until, standing, updated_at)
    VALUES (:impl_id, :timeframe, :began_at, :seen_until, :standing, :now)
    ON CONFLICT (impl_id) DO NOTHING
"""
_GO_ON = """
    UPDATE strategy_evaluations SET seen_until = :seen_until, standing = :standing, updated_at = :now
    WHERE impl_id = :impl_id AND seen_until = :before
"""
_SIGNAL = """
    INSERT INTO implementation_signals (signal_id, impl_id, symbol, action, strength, price, signal_type,
                                        signal_timestamp, created_at)
    VALUES (:signal_id, :impl_id, :symbol, :action, :strength, :price, :signal_type, :signal_timestamp, :created_at)
    ON CONFLICT (signal_id) DO NOTHING
"""
_FORWARD = """
    UPDATE strategy_implementations
    SET forward_sharpe = :sharpe, forward_accuracy = :accuracy, forward_return = :earned,
        forward_max_drawdown = :drawdown, forward_trades = :trades,
        updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END
    WHERE impl_id = :impl_id
"""
_TAKE = """
    INSERT INTO leases (name, holder, lease_until) VALUES (:name, :holder, :lease_until)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until
        WHERE leases.holder = excluded.holder OR leases.lease_until <= :now
    RETURNING name
"""
_RELEASE = "DELETE FROM leases WHERE name = :name AND holder = :holder"

ACTIONS = {"enter": "BUY", "leave": "CLOSE_LONG", "hold": "HOLD"}
"""Strategies are long or out of the market, so what they leave is a long."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Up to where an implementation was followed, on which bars, and since when."""

    timeframe: str
    began_at: datetime
    seen_until: datetime
    standing: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Followed:
    """An implementation that may be traded. Without a spec, `problem` says why it cannot be run."""

    impl_id: str
    name: str
    symbol: str
    parameters: dict[str, Any]
    created_at: datetime
    spec: StrategySpec | None
    problem: str
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Given:
    """A signal, by its key in ACTIONS, at the close of its bar; `late` is one that nobody could have acted on."""

    at: datetime
    decision: str
    price: float
    strength: float
    late: bool


@dataclass(frozen=True, slots=True)
class Forward:
    """What it came to since it is followed."""

    sharpe: float | None
    accuracy: float | None
    earned: float
    drawdown: float
    trades: int


class Evaluations(Source):
    """Reads are as of an instant; what is stored is known from `as_of` on."""

    group = "desk"

    def __init__(self, database: Database, source: str = "") -> None:
        self._database = database
        self.source = source or database.source

    async def ping(self) -> None:
        """Return if these tables can be read."""
        await self._database.row("SELECT count(*) AS followed FROM strategy_evaluations WHERE FALSE")

    async def followed(self, *, symbol: str | None, strategy: str | None, as_of: Now) -> list[Followed]:
        """What is validated or deployed, of an active spec, and known; of one symbol where that is said.

        `strategy` is the name of a spec, or the id of one or of an implementation.
        """
        called = canonical_uuid(strategy) if strategy else None
        more = {} if called is None else {"called": called}
        sql = _ALL.format(of_id="" if called is None else "AND (i.impl_id = :called OR i.spec_id = :called)")
        name = strategy.strip().upper() if strategy and called is None else None
        rows = await self._database.rows(sql, as_of=as_of, symbol=symbol, name=name, **more)
        return [_followed(row, as_of) for row in rows]

    async def store(
        self,
        one: Followed,
        progress: Progress,
        given: Sequence[Given],
        weeks: Sequence[Measured],
        forward: Forward | None,
        *,
        as_of: Now,
    ) -> bool:
        """Keep what came of it; False where another was quicker, and nothing is kept."""
        state = {"impl_id": one.impl_id, "seen_until": progress.seen_until, "standing": progress.standing, "now": as_of}
        async with self._database.transaction():
            if one.progress is None:
                begun = {"timeframe": progress.timeframe, "began_at": progress.began_at}
                changed = await self._database.execute(_BEGIN, **state, **begun)
            else:
                changed = await self._database.execute(_GO_ON, **state, before=one.progress.seen_until)
            if not changed:
                return False
            if given:
                rows = [signal_row(one.impl_id, one.symbol, signal, known_at=as_of) for signal in given]
                await self._database.execute_many(_SIGNAL, rows)
            if weeks:
                await self._database.execute_many(SAVE, [row_of(week, as_of) for week in weeks])
            if forward is not None:
                await self._database.execute(
                    _FORWARD, impl_id=one.impl_id, sharpe=forward.sharpe, accuracy=forward.accuracy,
                    earned=forward.earned, drawdown=forward.drawdown, trades=forward.trades, now=as_of,
                )  # fmt: skip
        return True

    async def take(self, name: str, holder: str, for_s: float) -> bool:
        """Have a lease, or have it for longer; False while another has it."""
        now = datetime.now(UTC)  # machine time, as everything that expires
        until = now + timedelta(seconds=for_s)
        return bool(await self._database.returning(_TAKE, name=name, holder=holder, lease_until=until, now=now))

    async def release(self, name: str, holder: str) -> None:
        """Give it back."""
        await self._database.execute(_RELEASE, name=name, holder=holder)


def signal_row(impl_id: str, symbol: str, signal: Given, *, known_at: datetime) -> dict[str, Any]:
    """As it is stored. One close of one implementation has one id, whoever looks at it."""
    about = f"quantdeck:signal:{impl_id}:{symbol}:{signal.at}"
    return {
        "signal_id": str(uuid5(NAMESPACE_URL, about)), "impl_id": impl_id, "symbol": symbol,
        "action": ACTIONS[signal.decision], "strength": signal.strength, "price": signal.price,
        "signal_type": "forward_test" if signal.late else "live", "signal_timestamp": signal.at,
        "created_at": known_at,
    }  # fmt: skip


def _followed(row: Row, as_of: Now) -> Followed:
    # Only rules can make a spec unfit to run: another program's name or description may be of any length.
    found = read(name="STORED", **{part: row[part] for part in _PARTS})
    problem = "; ".join(f"{one.path} {one.message}" for one in found.problems[:3]) if found.spec is None else ""
    if as_of.fixed and max(row["updated_at"], row["spec_updated_at"]) > as_of:
        problem = "it was changed after the fixed clock, and its earlier state is not found"
    numbers = row["numbers"]
    began = row["timeframe"] is not None
    return Followed(
        impl_id=str(row["impl_id"]),
        name=row["name"],
        symbol=row["symbol"],
        parameters=numbers if isinstance(numbers, dict) else {},
        created_at=row["created_at"],
        spec=None if problem or found.spec is None else replace(found.spec, name=row["name"]),
        problem=problem,
        progress=Progress(row["timeframe"], row["began_at"], row["seen_until"], row["standing"]) if began else None,
    )
