"""Shared state in Redis: reading and writing are one script each, and one round trip.

Of a scope there are, behind the hash tag `{corr_id}` that keeps them together in a cluster: a hash for each entry, and
for the quota the expiry and the size of each key and their sum. A key that has expired gives its bytes back when the
scope is next written to.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from quantdeck.connections.databases import Databases
from quantdeck.connections.redis import SOURCE, Redis, Script
from quantdeck.core.clock import Now
from quantdeck.settings import Settings
from quantdeck.sources.shared_state import Entry, Quota, QuotaExceeded, SharedState, written_later

__all__ = ["RedisSharedState", "connect"]

# Times of the world are microseconds since 1970, which a number in Lua holds and its own way to write one does not.
# An entry with more time left than it was given was written before the clock of Redis was set back.
_GET = Script("""
local held = redis.call('HMGET', KEYS[1], 'value', 'created', 'updated', 'ttl')
if not held[1] then return false end
if ARGV[1] ~= '' then
  if tonumber(held[2]) > tonumber(ARGV[1]) then return false end
  if tonumber(held[3]) > tonumber(ARGV[1]) then return {'later'} end
end
local left = redis.call('PTTL', KEYS[1])
if left > tonumber(held[4]) then
  left = tonumber(held[4])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {'held', held[1], held[2], held[3], left, redis.call('HINCRBY', KEYS[1], 'count', 1)}
""")

# KEYS: the entry, expiries, sizes, bytes. ARGV: key, value, TTL in ms, the world's time where it stands, the quota.
_SET = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local world = ARGV[4] ~= '' and ARGV[4] or string.format('%.0f', time[1] * 1000000 + time[2])
local ttl, most_bytes, most_keys = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6])
local used = tonumber(redis.call('GET', KEYS[4]) or 0)
repeat
  local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 500)
  if #gone > 0 then
    for _, size in ipairs(redis.call('HMGET', KEYS[3], unpack(gone))) do used = used - (size or 0) end
    redis.call('HDEL', KEYS[3], unpack(gone))
    redis.call('ZREM', KEYS[2], unpack(gone))
  end
until #gone == 0
local before = redis.call('HGET', KEYS[3], ARGV[1])
local others = used - (before or 0)
local keys = redis.call('HLEN', KEYS[3]) - (before and 1 or 0)
local refused = others + #ARGV[2] > most_bytes and {'bytes', others} or keys >= most_keys and {'keys', keys}
if not refused then
  if not before then redis.call('DEL', KEYS[1]) end
  local created = redis.call('HGET', KEYS[1], 'created')
  if not created or tonumber(world) < tonumber(created) then created = world end
  redis.call('HSET', KEYS[1], 'value', ARGV[2], 'created', created, 'updated', world, 'ttl', ttl)
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', now + ttl))
  redis.call('ZADD', KEYS[2], now + ttl, ARGV[1])
  redis.call('HSET', KEYS[3], ARGV[1], #ARGV[2])
  used = others + #ARGV[2]
end
redis.call('SET', KEYS[4], string.format('%.0f', used))
for number = 2, 4 do redis.call('PEXPIRE', KEYS[number], ARGV[7]) end
return refused or {'stored', world}
""")

_OUTLIVE_MS = 90_000_000
"""How long a scope's accounts are kept after it was last written to: longer than any entry lives."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def connect(url: str, settings: Settings, databases: Databases) -> RedisSharedState:
    """The adapter; nothing is connected before the first call."""
    del databases
    limits = settings.shared_state
    quota = Quota(int(limits.quota_mb * 2**20), limits.quota_keys)
    return RedisSharedState(Redis(url, settings.redis), quota)


class RedisSharedState(SharedState):
    """See the port. Times of machines are Redis's own, so replicas need not agree on theirs."""

    source = SOURCE

    def __init__(self, redis: Redis, quota: Quota) -> None:
        self._redis = redis
        self._quota = quota

    async def ping(self) -> None:
        await self._redis.ping()

    async def close(self) -> None:
        await self._redis.close()

    async def get(self, corr_id: str, key: str, *, as_of: Now) -> Entry | None:
        found = await self._redis.run(_GET, [_entry(corr_id, key)], _world(as_of))
        if found is None:
            return None
        if found[0] == b"later":
            raise written_later(as_of, SOURCE)
        _, value, created, updated, left_ms, count = found
        return Entry(value, _instant(created), _instant(updated), math.ceil(left_ms / 1000), count)

    async def set(self, corr_id: str, key: str, value: bytes, *, ttl_s: int, at: Now) -> datetime:
        keys = [_entry(corr_id, key), *(f"state:{{{corr_id}}}:{account}" for account in ("expiries", "sizes", "bytes"))]
        most = (self._quota.bytes, self._quota.keys)
        how, told = await self._redis.run(_SET, keys, key, value, ttl_s * 1000, _world(at), *most, _OUTLIVE_MS)
        if how != b"stored":
            what = how.decode()
            raise QuotaExceeded(what, told, getattr(self._quota, what))
        return _instant(told) + timedelta(seconds=ttl_s)


def _entry(corr_id: str, key: str) -> str:
    return f"state:{{{corr_id}}}:entry:{key}"


def _world(now: Now) -> int | str:
    """The instant at which the world stands; nothing where it runs, for then Redis's own clock counts."""
    return -((_EPOCH - now) // _MICROSECOND) if now.fixed else ""


def _instant(microseconds: bytes) -> datetime:
    return _EPOCH + int(microseconds) * _MICROSECOND
