"""Whose token a call to Pyth is made with, and what its line in the log says of it."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any, TypeVar

from quantdeck.core.call import Call
from quantdeck.dialects.pyth import RATE_LIMITED, log_fields
from quantdeck.settings import Pyth as Settings
from quantdeck.sources.pyth import InvalidToken, clean_token

__all__ = ["WATERMARK", "Access"]

T = TypeVar("T")

WATERMARK = "Using Pyth Pro trial access. Get your own token for unlimited access at https://pyth.network/pricing"


class Access:
    """The caller's own token, else the server's; and where neither is set, the one for trial."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.token = clean_token(call.upstream_token) or clean_token(call.runtime.secrets.get("pyth"))
        call.upstream_token = self.token  # so that the log has its hash, and nothing else of it
        self.is_trial = False
        call.notes |= log_fields(call.arguments)

    @classmethod
    def from_call(cls, call: Call) -> Access:
        return cls(call)

    @property
    def settings(self) -> Settings:
        settings: Settings = self._call.runtime.options["pyth"]
        return settings

    def note(self, **fields: Any) -> None:
        """Add to the call's event."""
        self._call.notes.update(fields)

    async def for_prices(self) -> str | None:
        """The token to ask prices with. That for trial is counted, by session."""
        if self.token is not None:
            return self.token
        trial = clean_token(self._call.runtime.secrets.get("pyth trial"))
        if trial is None:
            return None
        self.is_trial = True
        self.note(is_trial=True)
        limit = self.settings.trial_rate_limit
        session = f"{self._call.caller.id} {self._call.session_id}"
        grant = await self._call.runtime.coordination.take(session, "pyth trial", limit)
        if not grant.granted:
            self.note(rate_limited=True)
            told = f"Rate limit exceeded: trial access has {limit} calls per minute; retry in {grant.wait_s} s"
            raise RATE_LIMITED(f"{told}, or get your own token at https://pyth.network/pricing.", limit=limit,
                               retry_after_s=grant.wait_s)  # fmt: skip
        return trial

    async def timed(self, answer: Awaitable[T]) -> T:
        """Wait for Pyth, and add it to what the log says of how long that took."""
        begun = time.perf_counter()
        try:
            return await answer
        except InvalidToken:
            if self.is_trial:  # the caller has none to check
                raise InvalidToken(missing=True) from None
            raise
        finally:
            took_ms = (time.perf_counter() - begun) * 1000
            self.note(api_latency_ms=round(self._call.notes["api_latency_ms"] + took_ms, 3))
