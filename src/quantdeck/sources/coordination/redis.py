"""Coordination through Redis: what several replicas have in common, each question one round trip.

Times are Redis's own. Every question has one key, so a cluster can tell where it is.
"""

from __future__ import annotations

import logging

from quantdeck.connections.databases import Databases
from quantdeck.connections.redis import SOURCE, Redis, Script
from quantdeck.core.errors import SourceError
from quantdeck.core.limits import Grant
from quantdeck.core.once import Conflict, Journal, Unknown
from quantdeck.core.wire import digest
from quantdeck.ids import fresh_id
from quantdeck.settings import Settings
from quantdeck.sources.coordination.embedded import WINDOW_S, SlidingWindows
from quantdeck.sources.coordination.leases import KEEP, Claim, Held, Leases

__all__ = ["RedisCoordination", "RedisLeases", "connect"]

log = logging.getLogger(__name__)

# A number in a text of Lua's own has 14 digits; microseconds since 1970 have 16. What lies ahead was counted by a clock
# that has been set back since, and would stop its client for as long.
_TAKE = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local most, window = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')
local taken = redis.call('ZCARD', KEYS[1])
local granted = 0
if taken < most then
  granted, taken = 1, taken + 1
  redis.call('ZADD', KEYS[1], now, string.format('%.0f', now) .. ARGV[3])
  redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
return {granted, taken, oldest and oldest + window - now or window}
""")

_CLAIM = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HMGET', KEYS[1], 'fingerprint', 'answer', 'lease_until')
local lost = held[1] and not held[2] and tonumber(held[3]) <= now
if held[1] and not (lost and ARGV[5] == '1') then
  if held[1] ~= ARGV[1] then return {'conflict'} end
  if held[2] then return {'answered', held[2]} end
  return {lost and 'unknown' or 'held'}
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'holder', ARGV[2],
           'lease_until', string.format('%.0f', now + ARGV[3]))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'claimed'}
""")

_MINE = """
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'answer') == 1 then return 0 end
"""
_FINISH = Script(f"{_MINE} redis.call('HSET', KEYS[1], 'answer', ARGV[2]) return 1")
_LOSE = Script(f"{_MINE} redis.call('HSET', KEYS[1], 'lease_until', 0) return 1")
_FREE = Script(f"{_MINE} redis.call('DEL', KEYS[1]) return 1")

_GET = Script("""
local kept = redis.call('GET', KEYS[1])
return kept and {kept, redis.call('PTTL', KEYS[1])}
""")
_PUT = Script("return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])")
_FIRST = Script("return redis.call('SET', KEYS[1], '', 'PX', ARGV[1], 'NX')")


def connect(url: str, settings: Settings, databases: Databases) -> RedisCoordination:
    """The adapter; nothing is connected before the first question."""
    del databases
    return RedisCoordination(Redis(url, settings.redis))


class RedisLeases(Leases):
    """Keys in Redis, each a hash that goes after a day."""

    def __init__(self, redis: Redis, *, lease_s: float = 120.0) -> None:
        self._redis = redis
        self._lease_ms = round(lease_s * 1000)

    async def _claim(self, claim: Claim) -> Held | None:
        slot, keep_ms = claim.slot, round(KEEP.total_seconds() * 1000)
        said = (slot.fingerprint, claim.holder, self._lease_ms, keep_ms, int(slot.repeatable))
        how, *answer = await self._redis.run(_CLAIM, _place(claim), *said)
        match how:
            case b"claimed":
                return None
            case b"conflict":
                raise Conflict(slot)
            case b"unknown":
                raise Unknown(slot)
        return Held(answer[0] if answer else None)

    async def _finish(self, claim: Claim, answer: bytes) -> None:
        await self._redis.run(_FINISH, _place(claim), claim.holder, answer)

    async def _free(self, claim: Claim) -> None:
        await self._redis.run(_FREE, _place(claim), claim.holder)

    async def _lose(self, claim: Claim) -> None:
        await self._redis.run(_LOSE, _place(claim), claim.holder)


def _place(claim: Claim) -> list[str]:
    return [f"idem:{digest(f'{claim.slot.scope} {claim.slot.key}')}"]


class RedisCoordination:
    """See the port.

    While Redis is out of reach, limits are this process's own and nothing is shared of the cache. An idempotency key,
    or a name that may be said once, is refused instead: who has it cannot be guessed.
    """

    shared = True
    source = SOURCE

    def __init__(self, redis: Redis) -> None:
        self.journal: Journal = RedisLeases(redis)
        self._redis = redis
        self._windows = SlidingWindows()
        self._alone = False

    async def take(self, client: str, tool: str, per_minute: int) -> Grant:
        window = round(WINDOW_S * 1_000_000)
        try:
            told = await self._redis.run(_TAKE, [f"rate:{tool}:{digest(client)}"], per_minute, window, fresh_id(8))
        except SourceError as error:
            self._told(error)
            return self._windows.take(client, tool, per_minute)
        self._told(None)
        granted, taken, reset_us = told
        return Grant(bool(granted), per_minute, max(0, per_minute - taken), reset_us / 1_000_000)

    async def get(self, key: str) -> tuple[bytes, float] | None:
        try:
            found = await self._redis.run(_GET, [f"kept:{key}"])
        except SourceError as error:
            self._told(error)
            return None
        return None if found is None else (found[0], found[1] / 1000)

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        try:
            await self._redis.run(_PUT, [f"kept:{key}"], value, max(1, round(ttl_s * 1000)))
        except SourceError as error:
            self._told(error)

    async def first(self, name: str, within_s: float) -> bool:
        """Whether nobody has said this name for so long, to any replica."""
        return await self._redis.run(_FIRST, [f"seen:{digest(name)}"], round(within_s * 1000)) is not None

    async def ping(self) -> None:
        """Return if Redis answers."""
        await self._redis.ping()

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.close()

    def _told(self, error: SourceError | None) -> None:
        """Say in the log when sharing ends and when it begins again, not of each call between."""
        if self._alone is (error is None):
            self._alone = error is not None
            fields = {"source": SOURCE, "why": error} if error is not None else {"source": SOURCE}
            log.warning("shared_no_more" if error else "shared_again", extra={"fields": fields})
