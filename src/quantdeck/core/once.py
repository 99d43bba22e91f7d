"""Effects happen once: under an explicit key an answer is remembered and replayed, never redone.

The journal of the source that the effect goes to is used where there is one: claim, effect and
answer then share a transaction, and a process killed at any point leaves all of it or nothing.
Otherwise the coordination's journal claims the key for a while; a claim that ran out without an
answer means that the outcome is unknown, and that is what the next caller hears.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from quantdeck.core.journal import Conflict, Recorded, Slot, Unknown
from quantdeck.core.wire import canonical, encode

if TYPE_CHECKING:
    from quantdeck.core.call import Call, Proceed
    from quantdeck.core.contract import Contract
    from quantdeck.core.journal import Journal

__all__ = ["run_once"]


def run_once(contract: Contract) -> Callable[[Proceed], Proceed]:
    """Honour an explicit key; and let a begun effect finish, whatever becomes of its caller."""
    effect, dialect = contract.policy.effect, contract.dialect
    conflict = dialect.conflict or dialect.invalid

    def wrap(proceed: Proceed) -> Proceed:
        async def begin(call: Call) -> Any:
            call.begun = effect
            return await proceed(call)

        async def once(call: Call) -> Any:
            if call.idempotency_key is None:
                return await (_shielded(call, begin(call)) if effect else proceed(call))
            if not _is_key(call.idempotency_key):
                raise dialect.invalid("Invalid idempotency key: it has 1 to 255 printable characters")

            async def answer() -> bytes:
                return encode(await begin(call))

            try:
                recorded = await _shielded(call, _journal(call).run(_slot(call), answer))
            except Conflict:
                raise conflict(
                    f"Idempotency key conflict: {call.idempotency_key!r} was used for other arguments; "
                    "choose a new key for a new request",
                    idempotency_key=call.idempotency_key,
                ) from None
            except Unknown:
                call.begun = True
                raise dialect.timeout(
                    "Timeout of an earlier call with this idempotency key: whether its change was made "
                    "is not known. Look before you repeat it under a new key",
                    idempotency_key=call.idempotency_key,
                    outcome="unknown",
                ) from None
            return _answered(call, recorded)

        return once

    return wrap


def _is_key(key: Any) -> bool:
    return isinstance(key, str) and 0 < len(key) < 256 and key.isprintable()


def _journal(call: Call) -> Journal:
    opened = (call.runtime.source(kind).journal for kind in call.contract.sources)
    return next((own for own in opened if own is not None), call.runtime.coordination.journal)


def _slot(call: Call) -> Slot:
    fingerprint = sha256(canonical(call.values)).hexdigest()
    scope = f"{call.caller.id}:{call.contract.name}"
    return Slot(scope, call.idempotency_key or "", fingerprint, repeatable=not call.contract.policy.effect)


def _answered(call: Call, recorded: Recorded) -> orjson.Fragment:
    call.replayed = recorded.replayed
    for kind in call.contract.sources[:1]:
        call.source = call.runtime.source(kind).source
    return orjson.Fragment(recorded.answer)


async def _shielded(call: Call, work: Coroutine[Any, Any, Any]) -> Any:
    """Wait for work that outlives us once its effect has begun; until then it dies with us."""
    task = call.runtime.tasks.start(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not call.begun:
            task.cancel()
        raise
