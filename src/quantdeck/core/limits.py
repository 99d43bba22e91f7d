"""Rate limits: a sliding minute per client and tool. A cached or replayed answer costs a token too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quantdeck.core.call import Call, Proceed
    from quantdeck.core.contract import Contract

__all__ = ["WINDOW_S", "Grant", "limit_rate"]

WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Grant:
    """Whether a call may go on, and how the window stands."""

    granted: bool
    limit: int
    remaining: int
    reset_s: float
    """Until the next token comes back."""

    @property
    def headers(self) -> dict[str, str]:
        """As HTTP tells it."""
        seconds = str(max(1, math.ceil(self.reset_s)))
        told = {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": seconds,
        }
        return told if self.granted else {**told, "Retry-After": seconds}


def limit_rate(contract: Contract) -> Callable[[Proceed], Proceed] | None:
    """Refuse what comes too fast, in specs that have a code for it."""
    code = contract.dialect.limited
    if code is None:
        return None

    def wrap(proceed: Proceed) -> Proceed:
        async def limited(call: Call) -> Any:
            per_minute = call.runtime.per_minute.get(contract.name, contract.policy.per_minute)
            if not per_minute:
                return await proceed(call)
            grant = await call.runtime.coordination.take(call.caller.id, contract.name, per_minute)
            call.grant = grant
            if not grant.granted:
                wait_s = max(1, math.ceil(grant.reset_s))
                raise code(
                    f"Rate limit exceeded: {per_minute} calls per minute; retry in {wait_s} s",
                    limit=per_minute,
                    retry_after_s=wait_s,
                )
            return await proceed(call)

        return limited

    return wrap
