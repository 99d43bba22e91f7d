"""Every call is told of, however it ends. Who listens, and in what words, is `quantdeck.observability`'s affair."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quantdeck.core.wire import Answer, RpcFailure

if TYPE_CHECKING:
    from quantdeck.core.call import Call, Proceed, Wrapper
    from quantdeck.core.contract import Contract

Outcome = Answer | RpcFailure
_CANCELLED = RpcFailure(0, "cancelled by the caller", status=499, code="cancelled")


@dataclass(slots=True)
class Observer:
    """What hears of every call, and how many are being answered."""

    tell: Callable[[Call, Outcome], None] = lambda *_: None
    span: Callable[[Call], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    in_flight: int = 0


def observe(contract: Contract) -> Wrapper:
    """Tell of every call."""

    async def observed(proceed: Proceed, call: Call) -> Any:
        observer = call.runtime.observer
        outcome: Outcome = _CANCELLED
        with observer.span(call):
            observer.in_flight += 1
            try:
                outcome = await proceed(call)
                return outcome
            finally:
                observer.in_flight -= 1
                with contextlib.suppress(Exception):  # telling must not cost the caller its answer
                    observer.tell(call, outcome)

    return observed
