"""Shared state in a relational database: a SQLite file of the home, or PostgreSQL where QUANTDECK_DATABASE names it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zlib import crc32

from quantdeck.connections.database import Database, Row
from quantdeck.connections.databases import Databases
from quantdeck.core.clock import Now
from quantdeck.settings import Settings
from quantdeck.sources.shared_state import Entry, Quota, QuotaExceeded, SharedState, written_later

__all__ = ["Embedded", "connect"]

_BUCKETS = 256
_SWEEP_EVERY, _SWEPT_AT_ONCE = 16, 64
"""Each sweep takes away more than was written since the last, so the table shrinks to what lives."""

_GET = """
    UPDATE shared_state SET access_count = access_count + 1
    WHERE corr_id = :corr_id AND key = :key AND expires_at > :now
    RETURNING access_count, created_at, updated_at, written_at, ttl_s, expires_at, value
"""
_GET_AS_OF = """
    UPDATE shared_state SET access_count = access_count + 1
    WHERE corr_id = :corr_id AND key = :key AND expires_at > :now AND updated_at <= :as_of
    RETURNING access_count, created_at, updated_at, written_at, ttl_s, expires_at, value
"""
_IS_LATER = """
    SELECT key FROM shared_state
    WHERE corr_id = :corr_id AND key = :key AND expires_at > :now AND created_at <= :as_of AND updated_at > :as_of
"""
# Its clock was set back since it was written: it lives on for what it was given, counted from now.
_BEGIN_AGAIN = """
    UPDATE shared_state SET written_at = :now, expires_at = :expires_at
    WHERE corr_id = :corr_id AND key = :key AND written_at = :written_at
"""

_TURN = """
    INSERT INTO shared_state_turns (bucket) VALUES (:bucket)
    ON CONFLICT (bucket) DO UPDATE SET bucket = excluded.bucket
"""
_SETTLE = "DELETE FROM shared_state WHERE corr_id = :corr_id AND expires_at <= :now"
_OTHERS = """
    SELECT count(*) AS keys, CAST(coalesce(sum(size_bytes), 0) AS BIGINT) AS bytes FROM shared_state
    WHERE corr_id = :corr_id AND expires_at > :now AND key <> :key
"""
_SET = """
    INSERT INTO shared_state (
        corr_id, key, size_bytes, access_count, created_at, updated_at, written_at, ttl_s, expires_at, value
    ) VALUES (:corr_id, :key, :size_bytes, 0, :world, :world, :now, :ttl_s, :expires_at, :value)
    ON CONFLICT (corr_id, key) DO UPDATE SET
        size_bytes = excluded.size_bytes, updated_at = excluded.updated_at, written_at = excluded.written_at,
        created_at = CASE
            WHEN excluded.created_at < shared_state.created_at THEN excluded.created_at ELSE shared_state.created_at
        END,
        ttl_s = excluded.ttl_s, expires_at = excluded.expires_at, value = excluded.value
"""
_SWEEP = """
    DELETE FROM shared_state WHERE (corr_id, key) IN (
        SELECT corr_id, key FROM shared_state WHERE expires_at <= :now LIMIT :most {skip_locked}
    )
"""


def connect(url: str, settings: Settings, databases: Databases) -> Embedded:
    """The adapter; nothing is opened before the first call."""
    del url
    limits = settings.shared_state
    quota = Quota(int(limits.quota_mb * 2**20), limits.quota_keys)
    return Embedded(databases.of("state"), quota, source="demo" if settings.is_demo else "")


def _wall() -> datetime:
    return datetime.now(UTC)


class Embedded(SharedState):
    """See the port."""

    def __init__(
        self, database: Database, quota: Quota, *, source: str = "", clock: Callable[[], datetime] = _wall
    ) -> None:
        self.source = source or database.source
        self.journal = database.journal
        self._database = database
        self._quota = quota
        self._clock = clock
        self._written = 0

    async def ping(self) -> None:
        await self._database.row("SELECT count(*) AS entries FROM shared_state WHERE 1 = 0")

    async def get(self, corr_id: str, key: str, *, as_of: Now) -> Entry | None:
        now, place = self._clock(), {"corr_id": corr_id, "key": key}
        if as_of.fixed:
            found = await self._database.returning(_GET_AS_OF, **place, now=now, as_of=as_of)
            if not found and await self._database.row(_IS_LATER, **place, now=now, as_of=as_of):
                raise written_later(as_of, self.source)
        else:
            found = await self._database.returning(_GET, **place, now=now)
        if not found:
            return None
        (row,) = found
        if row["written_at"] > now:
            row["expires_at"] = now + timedelta(seconds=row["ttl_s"])
            again = {"expires_at": row["expires_at"], "written_at": row["written_at"]}
            await self._database.execute(_BEGIN_AGAIN, **place, now=now, **again)
        return _entry(row, now)

    async def set(self, corr_id: str, key: str, value: bytes, *, ttl_s: int, at: Now) -> datetime:
        async with self._database.transaction():
            await self._database.execute(_TURN, bucket=crc32(corr_id.encode()) % _BUCKETS)
            now = self._clock()  # after the wait for the turn, so that of two the later has the later time
            world, ttl = at if at.fixed else now, timedelta(seconds=ttl_s)
            await self._database.execute(_SETTLE, corr_id=corr_id, now=now)
            await self._check_quota(corr_id, key, len(value), now)
            await self._database.execute(
                _SET,
                corr_id=corr_id,
                key=key,
                size_bytes=len(value),
                world=world,
                now=now,
                ttl_s=ttl_s,
                expires_at=now + ttl,
                value=value,
            )
            await self._sweep(now)
        return world + ttl

    async def _check_quota(self, corr_id: str, key: str, size_bytes: int, now: datetime) -> None:
        (others,) = await self._database.rows(_OTHERS, corr_id=corr_id, key=key, now=now)
        if others["bytes"] + size_bytes > self._quota.bytes:
            raise QuotaExceeded("bytes", others["bytes"], self._quota.bytes)
        if others["keys"] >= self._quota.keys:
            raise QuotaExceeded("keys", others["keys"], self._quota.keys)

    async def _sweep(self, now: datetime) -> None:
        """Remove what expired in scopes that nobody writes to any more."""
        self._written += 1
        if self._written % _SWEEP_EVERY == 0:
            sweep = _SWEEP.format(skip_locked=self._database.skip_locked)
            await self._database.execute(sweep, now=now, most=_SWEPT_AT_ONCE)


def _entry(row: Row, now: datetime) -> Entry:
    left_s = math.ceil((row["expires_at"] - now).total_seconds())
    return Entry(bytes(row["value"]), row["created_at"], row["updated_at"], left_s, row["access_count"])
