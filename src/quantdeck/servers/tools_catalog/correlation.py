"""By what a call is found again in other programs' logs."""

from __future__ import annotations

from typing import Self

from quantdeck.core.call import Call

__all__ = ["CorrelationId"]


class CorrelationId(str):
    """A tool asks for it by annotating a parameter with it."""

    __slots__ = ()

    @classmethod
    def from_call(cls, call: Call) -> Self:
        return cls(call.correlation_id or "")
