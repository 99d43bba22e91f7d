"""Coordination without a server: limits in memory, idempotency keys in a SQLite file of the home.

Enough for one process per server, and for several that share a home as far as keys go.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from quantdeck.connections.database import Database, Row, finished
from quantdeck.connections.databases import Databases
from quantdeck.core.errors import Busy, Denied, NotConfigured, NotInPast, SourceError, ToolError
from quantdeck.core.limits import Grant
from quantdeck.core.once import Conflict, Recorded, Slot, Unknown
from quantdeck.settings import Settings

__all__ = ["Embedded", "LeaseJournal", "SlidingWindows", "connect"]

WINDOW_S = 60.0
KEEP = timedelta(hours=24)
SWEPT_AT_ONCE = 256


class SlidingWindows:
    """The calls of the last minute, by client and tool. Forgets the longest silent beyond a bound."""

    def __init__(self, *, max_clients: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._windows: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._max = max_clients
        self._clock = clock

    def take(self, client: str, tool: str, per_minute: int) -> Grant:
        """Count one call, if there is room for it; a refused call costs nothing."""
        now = self._clock()
        window = self._windows.setdefault((client, tool), deque())
        self._windows.move_to_end((client, tool))
        while window and window[0] <= now - WINDOW_S:
            window.popleft()
        granted = len(window) < per_minute
        if granted:
            window.append(now)
        while len(self._windows) > self._max:
            self._windows.popitem(last=False)
        reset_s = window[0] - now + WINDOW_S if window else WINDOW_S
        return Grant(granted, per_minute, max(0, per_minute - len(window)), reset_s)


_CLAIM = """
    INSERT INTO idempotency_claims (scope, key, fingerprint, lease_until, created_at)
    VALUES (:scope, :key, :fingerprint, :lease_until, :now)
    ON CONFLICT (scope, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, answer = NULL, lease_until = excluded.lease_until,
            created_at = excluded.created_at
        WHERE idempotency_claims.created_at <= :expired
           OR (:repeatable AND idempotency_claims.answer IS NULL AND idempotency_claims.lease_until <= :now)
    RETURNING key
"""
_FIND = """
    SELECT fingerprint, answer, lease_until FROM idempotency_claims WHERE scope = :scope AND key = :key
"""
_DONE = "UPDATE idempotency_claims SET answer = :answer WHERE scope = :scope AND key = :key"
_LOST = "UPDATE idempotency_claims SET lease_until = :now WHERE scope = :scope AND key = :key"
_WITHDRAW = """
    DELETE FROM idempotency_claims
    WHERE scope = :scope AND key = :key AND created_at = :now AND answer IS NULL
"""
_FREE = "DELETE FROM idempotency_claims WHERE scope = :scope AND key = :key"
_SWEEP = """
    DELETE FROM idempotency_claims WHERE (scope, key) IN (
        SELECT scope, key FROM idempotency_claims WHERE created_at <= :expired LIMIT :most {skip_locked}
    )
"""


_UNDONE = (ToolError, Busy, Denied, NotConfigured, NotInPast)
"""These say that nothing was done."""


class LeaseJournal:
    """For effects that go where no transaction of ours reaches.

    claimed (lease) -> answered. A lease that ran out without an answer is *unknown*, not free: its
    holder may have died between the effect and the record of it.
    """

    def __init__(self, database: Callable[[], Database], *, lease_s: float = 120.0) -> None:
        self._database = database
        self._lease = timedelta(seconds=lease_s)

    async def run(self, slot: Slot, effect: Callable[[], Awaitable[bytes]]) -> Recorded:
        """See `Journal`."""
        pause_s = 0.005
        while (found := await self._claimed(slot)) is not None:
            if found["answer"] is not None:
                return Recorded(bytes(found["answer"]), replayed=True)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
            pause_s = min(pause_s * 2, 0.25)
        return Recorded(await self._answered(slot, effect), replayed=False)

    async def _claimed(self, slot: Slot) -> Row | None:
        """None where the slot is ours now, else what another has there."""
        now = datetime.now(UTC)
        try:
            return await self._claim(slot, now)
        except asyncio.CancelledError:
            # It may have been stored; nothing was begun under it, so it must not stand as an unknown outcome.
            with contextlib.suppress(SourceError):
                await finished(self._database().execute(_WITHDRAW, scope=slot.scope, key=slot.key, now=now))
            raise

    async def _claim(self, slot: Slot, now: datetime) -> Row | None:
        at = {"scope": slot.scope, "key": slot.key}
        database = self._database()
        async with database.transaction():
            if await database.returning(
                _CLAIM,
                **at,
                fingerprint=slot.fingerprint,
                repeatable=slot.repeatable,
                lease_until=now + self._lease,
                now=now,
                expired=now - KEEP,
            ):
                sweep = _SWEEP.format(skip_locked=database.skip_locked)
                await database.execute(sweep, expired=now - KEEP, most=SWEPT_AT_ONCE)
                return None
            found = await database.row(_FIND, **at)
        if found is None:  # its holder has just let go of it
            return {"answer": None}
        if found["fingerprint"] != slot.fingerprint:
            raise Conflict(slot)
        if found["answer"] is None and found["lease_until"] <= now:
            raise Unknown(slot)
        return found

    async def _answered(self, slot: Slot, effect: Callable[[], Awaitable[bytes]]) -> bytes:
        at = {"scope": slot.scope, "key": slot.key}
        database = self._database()
        try:
            answer = await effect()
        except BaseException as error:
            if isinstance(error, _UNDONE):
                await database.execute(_FREE, **at)
            else:
                await database.execute(_LOST, **at, now=datetime.now(UTC))
            raise
        await database.execute(_DONE, **at, answer=answer)
        return answer


def connect(url: str, settings: Settings, databases: Databases) -> Embedded:
    """The adapter; nothing is opened before the first key is claimed."""
    del url, settings
    return Embedded(lambda: databases.of("state"))


class Embedded:
    """See the port."""

    shared = False

    def __init__(self, state: Callable[[], Database], windows: SlidingWindows | None = None) -> None:
        self.journal = LeaseJournal(state)
        self._windows = windows or SlidingWindows()

    async def take(self, client: str, tool: str, per_minute: int) -> Grant:
        return self._windows.take(client, tool, per_minute)

    async def get(self, key: str) -> tuple[bytes, float] | None:
        """Nothing: the in-process cache has asked itself already."""
        del key
        return None

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Nothing, likewise."""

    async def close(self) -> None:
        """Nothing: its database is the process's."""
