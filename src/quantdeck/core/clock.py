"""World time: the wall clock, or one instant at which the world stands still.

Machine time (deadlines, TTLs, leases) never comes from here; see docs/adr/0003-two-times.md.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from quantdeck.core.call import Call


class Now(datetime):
    """The instant a call is answered as of. A tool asks for it by annotating a parameter with it.

    `fixed` tells a source that the world stands in the past: a row that is updated in place and was
    written after this instant must be refused, because what it said at the time is gone.
    """

    fixed: bool = True  # also of what is computed from a `Now`: it stands elsewhere than the present

    @classmethod
    def of(cls, instant: datetime, *, fixed: bool) -> Self:
        if instant.tzinfo is None:
            raise ValueError("an instant has an offset from UTC; write it like 2026-01-15T09:30:00Z")
        at = instant.astimezone(UTC)
        now = cls(at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond, tzinfo=UTC)
        now.fixed = fixed
        return now

    @classmethod
    def from_call(cls, call: Call) -> Now:
        """The one instant of this call: two reads in one call agree."""
        return call.now

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (datetime.isoformat(self), self.fixed)


def _rebuild(text: str, fixed: bool) -> Now:
    return Now.of(datetime.fromisoformat(text), fixed=fixed)


class Clock:
    """Where `Now` comes from."""

    def __init__(self, instant: datetime | None = None) -> None:
        self.instant = None if instant is None else Now.of(instant, fixed=True)
        self.fixed = instant is not None

    def now(self) -> Now:
        return self.instant or Now.of(datetime.now(UTC), fixed=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """`wall`, or an ISO-8601 instant; one without an offset is ambiguous and refused."""
        return cls() if text == "wall" else cls(datetime.fromisoformat(text))


def iso(instant: datetime) -> str:
    """ISO-8601 in UTC with a Z, fractions only where there are any."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
