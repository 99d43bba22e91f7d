"""Rate limits: a sliding minute per client and tool. A cached or replayed answer costs a token too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quantdeck.core.call import Call, Proceed, Wrapper
    from quantdeck.core.contract import Contract


@dataclass(frozen=True, slots=True)
class Grant:
    """Whether a call may go on, and how the window stands."""

    granted: bool
    limit: int
    remaining: int
    reset_s: float  # until the next token comes back

    @property
    def wait_s(self) -> int:
        return max(1, math.ceil(self.reset_s))  # 0 would invite a client to try at once


def limit_rate(contract: Contract) -> Wrapper | None:
    """Refuse what comes too fast, in specs that have a code for it."""
    code = contract.dialect.limited
    if code is None:
        return None

    async def limited(proceed: Proceed, call: Call) -> Any:
        per_minute = call.runtime.per_minute.get(contract.name, contract.policy.per_minute)
        if per_minute:
            call.grant = grant = await call.runtime.coordination.take(call.caller.id, contract.name, per_minute)
            if not grant.granted:
                call.notes["rate_limited"] = True
                sentence = f"Rate limit exceeded: {per_minute} calls per minute; retry in {grant.wait_s} s"
                raise code(sentence, limit=per_minute, retry_after_s=grant.wait_s)
        return await proceed(call)

    return limited
