"""The port `events`: logs of backtest events, many runs in one. A run and its events are known at its creation.

Times are whole microseconds since 1970 UTC; both ends of a span belong to it. Events come in the order of time, then of
writing. Of a run that is not known as of the instant every read answers None.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from quantdeck.domain.event_state import ActiveOrder, Indicator, Pnl, Position
from quantdeck.domain.event_types import Category, Entity, EventType, Severity

__all__ = [
    "EVER",
    "Chain",
    "Event",
    "Events",
    "Found",
    "Run",
    "Slice",
    "Span",
    "State",
    "Totals",
]

Status = Literal["open", "complete", "failed"]
PnlSource = Literal["StateChange", "PositionUpdate"]


class Span(NamedTuple):
    """From when until when."""

    start: int = -(2**62)
    end: int = 2**62


EVER = Span()


class Slice(NamedTuple):
    """How many, after how many."""

    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run. A log that does not tell how a run ended has no status."""

    run_id: str
    strategy: str | None
    parameters: dict[str, Any] | None
    config_hash: str
    started: int | None
    ended: int | None
    created: int
    status: Status | None
    events: int


class Event(NamedTuple):
    """One event; properties and errors are JSON as it is stored."""

    id: int
    event_id: str
    at: int
    kind: EventType
    severity: Severity
    category: Category
    properties: str
    parent: str | None
    errors: str | None


class Found(NamedTuple):
    """A slice of events, and how many there are in all."""

    events: list[Event]
    total: int


class Totals(NamedTuple):
    """Over the numbers at a path. What was not asked for, or has no number to go by, is None."""

    events: int
    values: int
    sum: float | None
    mean: float | None
    least: float | None
    most: float | None
    deviation: float | None


@dataclass(frozen=True, slots=True)
class State:
    positions: list[Position]
    indicators: list[Indicator]
    orders: list[ActiveOrder]
    pnl: Pnl
    pnl_source: PnlSource | None


class Chain(NamedTuple):
    """A root with its descendants, and the words of the pattern that it lacks."""

    root: str
    events: list[Event]
    missing: list[str]


class Events(Source):
    """Read only."""

    port = "events"
    reply_bytes: int  # how large an answer may become

    @abstractmethod
    async def runs(self, page: Slice, *, as_of: Now) -> tuple[list[Run], int]:
        """The runs, newest first, and how many there are."""

    @abstractmethod
    async def run(self, run_id: str, *, as_of: Now) -> Run | None:
        """One run, by its GUID."""

    @abstractmethod
    async def of_type(
        self,
        run_id: str,
        kind: EventType,
        span: Span,
        page: Slice,
        *,
        severity: Severity | None = None,
        categories: Sequence[Category] = (),
        as_of: Now,
    ) -> Found | None:
        """Events of one type; of any category where none is said."""

    @abstractmethod
    async def of_entity(
        self, run_id: str, entity: Entity, value: str, kinds: Sequence[EventType], page: Slice, *, as_of: Now
    ) -> Found | None:
        """Events whose property of this name is this text, or this number. Securities ignore case."""

    @abstractmethod
    async def invalid(
        self, run_id: str, severity: Literal["Error", "Warning"] | None, page: Slice, *, as_of: Now
    ) -> Found | None:
        """Events with validation errors, at least one of which is as severe as said."""

    @abstractmethod
    async def written(self, run_id: str, after: int, limit: int, *, as_of: Now) -> list[Event]:
        """The events that were written next after the one with this `id`, in the order of writing."""

    @abstractmethod
    async def totals(
        self, run_id: str, kind: EventType, path: str, span: Span, *, deviation: bool = True, as_of: Now
    ) -> Totals | None:
        """Over all events of a type. Numerals are numbers, other texts and true are none. Population deviation."""

    @abstractmethod
    async def state(
        self,
        run_id: str,
        at: int,
        *,
        symbol: str | None = None,
        indicators: bool = True,
        orders: bool = True,
        as_of: Now,
    ) -> State | None:
        """What the strategy held and knew at an instant, of one security or of all."""

    @abstractmethod
    async def chain(self, run_id: str, root: str, pattern: Sequence[str], depth: int, *, as_of: Now) -> Chain | None:
        """The chain below an event, which need not be a root; None also where the run has no such event."""

    @abstractmethod
    async def chains(
        self, run_id: str, pattern: Sequence[str], depth: int, page: Slice, *, incomplete: bool = False, as_of: Now
    ) -> tuple[list[Chain], int] | None:
        """Chains by their root, and how many there are in all.

        With a pattern: those whose root is its first word, either all that fulfil it or all that do not. Without one:
        every chain of at least two events, counting a parent that is missing. An event whose parent is not in the run
        is a root.
        """
