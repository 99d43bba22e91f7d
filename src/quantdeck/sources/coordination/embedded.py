"""Coordination without a server: limits in memory, idempotency keys in a SQLite file of the home.

Enough for one process per server, and for several that share a home as far as keys go.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from quantdeck.connections.database import Database
from quantdeck.connections.databases import Databases
from quantdeck.core.limits import Grant
from quantdeck.core.once import Conflict, Journal, Unknown
from quantdeck.settings import Settings
from quantdeck.sources.coordination.leases import KEEP, Claim, Held, Leases

__all__ = ["KEEP", "Embedded", "LeaseJournal", "SlidingWindows", "connect"]

WINDOW_S = 60.0
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
    INSERT INTO idempotency_claims (scope, key, fingerprint, lease_until, created_at, holder)
    VALUES (:scope, :key, :fingerprint, :lease_until, :now, :holder)
    ON CONFLICT (scope, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, answer = NULL, lease_until = excluded.lease_until,
            created_at = excluded.created_at, holder = excluded.holder
        WHERE idempotency_claims.created_at <= :expired
           OR (:repeatable AND idempotency_claims.answer IS NULL AND idempotency_claims.lease_until <= :now)
    RETURNING key
"""
_FIND = """
    SELECT fingerprint, answer, lease_until FROM idempotency_claims WHERE scope = :scope AND key = :key
"""
_FINISH = """
    UPDATE idempotency_claims SET answer = :answer
    WHERE scope = :scope AND key = :key AND holder = :holder AND answer IS NULL
"""
_LOSE = """
    UPDATE idempotency_claims SET lease_until = :now
    WHERE scope = :scope AND key = :key AND holder = :holder AND answer IS NULL
"""
_FREE = """
    DELETE FROM idempotency_claims WHERE scope = :scope AND key = :key AND holder = :holder AND answer IS NULL
"""
_SWEEP = """
    DELETE FROM idempotency_claims WHERE (scope, key) IN (
        SELECT scope, key FROM idempotency_claims WHERE created_at <= :expired LIMIT :most {skip_locked}
    )
"""

_SEEN = """
    INSERT INTO seen_names (name, seen_until) VALUES (:name, :until)
    ON CONFLICT (name) DO UPDATE SET seen_until = excluded.seen_until WHERE seen_names.seen_until <= :now
    RETURNING name
"""
_SWEEP_SEEN = """
    DELETE FROM seen_names WHERE name IN (
        SELECT name FROM seen_names WHERE seen_until <= :now LIMIT :most {skip_locked}
    )
"""


class LeaseJournal(Leases):
    """Keys in a relational database."""

    def __init__(self, database: Callable[[], Database], *, lease_s: float = 120.0) -> None:
        self._database = database
        self._lease = timedelta(seconds=lease_s)

    async def _claim(self, claim: Claim) -> Held | None:
        now, slot, database = datetime.now(UTC), claim.slot, self._database()
        async with database.transaction():
            if await database.returning(
                _CLAIM,
                **_place(claim),
                fingerprint=slot.fingerprint,
                repeatable=slot.repeatable,
                lease_until=now + self._lease,
                now=now,
                expired=now - KEEP,
            ):
                sweep = _SWEEP.format(skip_locked=database.skip_locked)
                await database.execute(sweep, expired=now - KEEP, most=SWEPT_AT_ONCE)
                return None
            found = await database.row(_FIND, scope=slot.scope, key=slot.key)
        if found is None:  # its holder has just let go of it
            return Held(None)
        if found["fingerprint"] != slot.fingerprint:
            raise Conflict(slot)
        if found["answer"] is None and found["lease_until"] <= now:
            raise Unknown(slot)
        return Held(None if found["answer"] is None else bytes(found["answer"]))

    async def _finish(self, claim: Claim, answer: bytes) -> None:
        await self._database().execute(_FINISH, **_place(claim), answer=answer)

    async def _free(self, claim: Claim) -> None:
        await self._database().execute(_FREE, **_place(claim))

    async def _lose(self, claim: Claim) -> None:
        await self._database().execute(_LOSE, **_place(claim), now=datetime.now(UTC))


def _place(claim: Claim) -> dict[str, str]:
    return {"scope": claim.slot.scope, "key": claim.slot.key, "holder": claim.holder}


def connect(url: str, settings: Settings, databases: Databases) -> Embedded:
    """The adapter; nothing is opened before the first key is claimed."""
    del url, settings
    return Embedded(lambda: databases.of("state"))


class Embedded:
    """See the port."""

    shared = False

    def __init__(self, state: Callable[[], Database], windows: SlidingWindows | None = None) -> None:
        self.journal: Journal = LeaseJournal(state)
        self._state = state
        self._windows = windows or SlidingWindows()

    async def take(self, client: str, tool: str, per_minute: int) -> Grant:
        return self._windows.take(client, tool, per_minute)

    async def get(self, key: str) -> tuple[bytes, float] | None:
        """Nothing: the in-process cache has asked itself already."""
        del key
        return None

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Nothing, likewise."""

    async def first(self, name: str, within_s: float) -> bool:
        """Whether nobody has said this name for so long, in any process of the home."""
        now, database = datetime.now(UTC), self._state()
        until = now + timedelta(seconds=within_s)
        async with database.transaction():
            told = await database.returning(_SEEN, name=name, until=until, now=now)
            sweep = _SWEEP_SEEN.format(skip_locked=database.skip_locked)
            await database.execute(sweep, now=now, most=SWEPT_AT_ONCE)
        return bool(told)

    async def close(self) -> None:
        """Nothing: its database is the process's."""
