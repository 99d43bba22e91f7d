"""get_state_snapshot: what the strategy held and knew at an instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from quantdeck.core.call import Caller
from quantdeck.core.clock import Now, iso
from quantdeck.dialects.backtest_events import (
    DATABASE_ERROR,
    INVALID_TIME_RANGE,
    QUERY_TIMEOUT,
    RESULT_TOO_LARGE,
    RUN_NOT_FOUND,
    backtest_events,
)
from quantdeck.domain import event_state
from quantdeck.domain.event_state import Pnl
from quantdeck.domain.event_times import instant, micros
from quantdeck.servers.backtest_events.arguments import RunId, Time, check_not_ahead, known_run
from quantdeck.servers.backtest_events.results import GuidText, Moment, Stopwatch, check_size, object_or_text
from quantdeck.sources.events import Events, PnlSource, State


@dataclass(frozen=True, slots=True)
class Position:
    securitySymbol: str
    quantity: Annotated[float | None, Field(description="0 for one that was closed; it keeps its realizedPnL")]
    averagePrice: float | None
    unrealizedPnL: float | None
    realizedPnL: float | None


@dataclass(frozen=True, slots=True)
class Indicator:
    name: str
    securitySymbol: str
    value: float | None
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ActiveOrder:
    orderId: str
    securitySymbol: str
    direction: Annotated[
        Literal["Buy", "Sell"] | None, WithJsonSchema({"type": ["string", "null"], "enum": ["Buy", "Sell", None]})
    ]
    quantity: Annotated[float | None, Field(description="What is not executed yet")]
    price: float | None


@dataclass(frozen=True, slots=True)
class ProfitAndLoss:
    total: float
    realized: float
    unrealized: float


@dataclass(frozen=True, slots=True)
class StrategyState:
    positions: list[Position]
    indicators: list[Indicator]
    activeOrders: list[ActiveOrder]
    pnl: ProfitAndLoss


@dataclass(frozen=True, slots=True)
class SnapshotMetadata:
    queryTimeMs: int
    reconstructed: bool
    pnlSource: Annotated[
        PnlSource | None,
        WithJsonSchema(
            {
                "type": ["string", "null"],
                "enum": ["StateChange", "PositionUpdate", None],
                "description": "Events that pnl comes from; null where there were none yet",
            }
        ),
    ]


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    timestamp: Moment
    runId: GuidText
    state: StrategyState
    metadata: SnapshotMetadata


@backtest_events.tool(errors=(RUN_NOT_FOUND, INVALID_TIME_RANGE, QUERY_TIMEOUT, RESULT_TOO_LARGE, DATABASE_ERROR))
async def get_state_snapshot(
    events: Events,
    caller: Caller,
    now: Now,
    run_id: RunId,
    timestamp: Annotated[Time, Field(description="Timestamp to query state for")],
    security_symbol: Annotated[
        str | None, Field(description="Filter state to specific security (empty = all securities)")
    ] = None,
    include_indicators: Annotated[bool, Field(description="Include indicator values in state")] = True,
    include_active_orders: Annotated[bool, Field(description="Include active orders in state")] = True,
) -> StateSnapshot:
    """Reconstruct strategy state (positions, PnL, indicators, active orders) at a given moment by replaying events up to that timestamp."""
    watch, at = Stopwatch(), instant(timestamp)
    run = await known_run(events, caller, run_id, now)
    check_not_ahead(run, now, at, "timestamp", {"timestamp": iso(at)})
    found = await events.state(
        run_id,
        micros(at),
        symbol=security_symbol or None,
        indicators=include_indicators,
        orders=include_active_orders,
        as_of=now,
    ) or State([], [], [], Pnl(0.0, 0.0), None)
    metadata = SnapshotMetadata(watch.ms, reconstructed=True, pnlSource=found.pnl_source)
    answer = StateSnapshot(iso(at), run_id, _wire(found), metadata)
    check_size(answer, events.reply_bytes, "ask for one securitySymbol, or leave out indicators or orders")
    return answer


def _wire(found: State) -> StrategyState:
    return StrategyState(
        [_position(one) for one in found.positions],
        [Indicator(one.name, one.symbol, one.value, object_or_text(one.parameters)) for one in found.indicators],
        [ActiveOrder(one.order_id, one.symbol, one.direction, one.remaining, one.price) for one in found.orders],
        ProfitAndLoss(found.pnl.total, found.pnl.realized, found.pnl.unrealized),
    )


def _position(one: event_state.Position) -> Position:
    return Position(one.symbol, one.quantity, one.average_price, one.unrealized, one.realized)
