"""Every store that shared state may stand on, with a hand on its clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from quantdeck.connections.database import Database
from quantdeck.connections.redis import Redis
from quantdeck.connections.sqlite import SQLite
from quantdeck.migrations import migrate
from quantdeck.sources.shared_state import Quota, SharedState
from quantdeck.sources.shared_state.embedded import Embedded
from quantdeck.sources.shared_state.redis import RedisSharedState
from tests.support import postgresql, redis

__all__ = ["QUOTA", "Store", "opened"]

QUOTA = Quota(bytes=1000, keys=5)


class Store(Protocol):
    """A store that two processes have open."""

    def state(self, which: int = 0, quota: Quota = QUOTA) -> SharedState: ...

    async def pass_on(self, seconds: float) -> None:
        """Let time go by."""

    async def set_back(self, seconds: float) -> None:
        """Set the machine's clock back, after which what was written seems to lie ahead."""

    async def kept(self) -> int:
        """How many entries there are, expired ones that still take room included."""


@dataclass
class _Relational:
    pair: tuple[Database, Database]
    ahead: timedelta = field(default=timedelta())

    def state(self, which: int = 0, quota: Quota = QUOTA) -> SharedState:
        return Embedded(self.pair[which], quota, clock=lambda: datetime.now(UTC) + self.ahead)

    async def pass_on(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)

    async def set_back(self, seconds: float) -> None:
        self.ahead -= timedelta(seconds=seconds)

    async def kept(self) -> int:
        return len(await self.pair[0].rows("SELECT key FROM shared_state"))


_SHIFT = """
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. 'state:*:entry:*')) do
  redis.call('PEXPIRE', key, redis.call('PTTL', key) - ARGV[2])
end
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. 'state:*:expiries')) do
  for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -ARGV[2], member) end
end
"""


@dataclass
class _InRedis:
    pair: tuple[Redis, Redis]
    server: redis.RedisServer
    prefix: str

    def state(self, which: int = 0, quota: Quota = QUOTA) -> SharedState:
        return RedisSharedState(self.pair[which], quota)

    async def pass_on(self, seconds: float) -> None:
        self.server.ask("EVAL", _SHIFT, "0", self.prefix, str(round(seconds * 1000)))

    async def set_back(self, seconds: float) -> None:
        await self.pass_on(-seconds)

    async def kept(self) -> int:
        script = "return #redis.call('KEYS', ARGV[1] .. 'state:*:entry:*')"
        return int(self.server.ask("EVAL", script, "0", self.prefix)[1:])


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[Store]:
    """An empty one: `sqlite`, `postgresql`, `redis`, or `cluster`, a Redis that keeps to a cluster's rules."""
    async with AsyncExitStack() as stack:
        if kind in {"redis", "cluster"}:
            server = redis.available(cluster=kind == "cluster")
            settings = redis.keyed()
            first, second = (Redis(server.url, settings) for _ in range(2))
            stack.push_async_callback(first.close)
            stack.push_async_callback(second.close)
            yield _InRedis((first, second), server, settings.prefix)
            return
        pair = await _databases(kind, folder)
        for database in pair:
            stack.push_async_callback(database.close)
        yield _Relational(pair)


async def _databases(kind: str, folder: Path) -> tuple[Database, Database]:
    if kind == "sqlite":
        first, second = (SQLite(folder / "state.db", groups=("journal", "state")) for _ in range(2))
        return first, second
    from quantdeck.connections.postgresql import PostgreSQL

    dsn = await postgresql.available().new_database()
    pair = (PostgreSQL(dsn), PostgreSQL(dsn))
    await migrate(pair[0], ("state",))
    return pair
