"""The port `shared_state`: values that agents leave for one another, by correlation id and key, for a while.

A value is JSON as it was encoded. It lives by machine time, as everything that expires; it is dated by the world's, so
that at a fixed clock nothing is shown that was written later, and what is written there is known there.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from quantdeck.core.clock import Now, iso
from quantdeck.core.contract import Source
from quantdeck.core.errors import NotInPast

__all__ = ["Entry", "Quota", "QuotaExceeded", "SharedState", "written_later"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One value. `ttl_s` is what it has left, a begun second counted whole; this reading is in `access_count`."""

    value: bytes
    created_at: datetime
    updated_at: datetime
    ttl_s: int
    access_count: int


@dataclass(frozen=True, slots=True)
class Quota:
    """What one correlation id may keep."""

    bytes: int
    keys: int


class QuotaExceeded(Exception):
    """Nothing was stored: with it the scope would have more `what` than its quota."""

    def __init__(self, what: str, used: int, most: int) -> None:
        super().__init__(what)
        self.what, self.used, self.most = what, used, most


class SharedState(Source):
    """See the module."""

    port: ClassVar[str] = "shared_state"

    @abstractmethod
    async def get(self, corr_id: str, key: str, *, as_of: Now) -> Entry | None:
        """The value, and count the access; None where there is none, none any more or none yet.

        One that was there at a fixed instant and has been overwritten since is NotInPast: what it was is gone.
        """

    @abstractmethod
    async def set(self, corr_id: str, key: str, value: bytes, *, ttl_s: int, at: Now) -> datetime:
        """Store a value, new or in place of another; when it will expire, in the world's time.

        `created_at` and the count of accesses survive an overwriting, and end with the entry. Raises QuotaExceeded.
        """


def written_later(as_of: Now, source: str) -> NotInPast:
    """An entry that was overwritten after the instant at which the clock stands."""
    return NotInPast(
        f"The clock of this server stands at {iso(as_of)}, and this value was written later; what it was then is gone.",
        source=source,
        clock=iso(as_of),
    )
