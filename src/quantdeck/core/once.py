"""Effects happen once: under an explicit key an answer is remembered and replayed, never redone.

Where the source that the effect goes to has a journal, claim, effect and answer share a transaction there, and a
process killed at any point leaves all of it or nothing. Otherwise the coordination's journal claims the key for a
while; a claim that ran out without an answer is an unknown outcome, and that is what the next caller hears.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from quantdeck.core.wire import canonical, digest, encode

if TYPE_CHECKING:
    from quantdeck.core.call import Call, Proceed, Wrapper
    from quantdeck.core.contract import Contract


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one answer. The fingerprint tells a retry from another request under its key."""

    scope: str
    key: str
    fingerprint: str
    repeatable: bool = False  # nothing is changed, so a lost answer is no unknown outcome


@dataclass(frozen=True, slots=True)
class Recorded:
    answer: bytes
    replayed: bool  # it is an earlier call's


class Conflict(Exception):
    """The slot's key was used before with another fingerprint."""


class Unknown(Exception):
    """The slot was claimed and its claim ran out without an answer: the effect may have happened."""


class Journal(Protocol):
    """Remembers answers. Which of them survive a crash, and together with what, is its own affair."""

    async def run(self, slot: Slot, effect: Callable[[], Awaitable[bytes]]) -> Recorded:
        """The slot's answer: an earlier one replayed, or the effect's. Who comes meanwhile waits for the first.

        An effect that raises leaves the slot free. `Unknown` is for where a crash can separate effect and answer.
        """
        ...


def run_once(contract: Contract) -> Wrapper:
    """Honour an explicit key; and let a begun effect finish, whatever becomes of its caller."""
    effect, dialect = contract.policy.effect, contract.dialect

    async def once(proceed: Proceed, call: Call) -> Any:
        key: Any = call.idempotency_key  # as the client sent it, so perhaps no text
        forget = partial(call.runtime.flights.forget, *contract.policy.forgets)
        outlive = partial(call.runtime.tasks.outliving, begun=lambda: call.begun, then=forget)
        for kind in contract.sources[:1]:
            call.source = call.runtime.source(kind).source

        async def answer() -> Any:
            call.begun = effect
            return await proceed(call)

        async def encoded() -> bytes:
            return encode(await answer())

        if key is None:
            return await (outlive(answer()) if effect else proceed(call))
        if not (isinstance(key, str) and 0 < len(key) < 256 and key.isprintable()):
            raise dialect.invalid("Invalid idempotency key: it has 1 to 255 printable characters")
        owned = (call.runtime.source(kind).journal for kind in contract.sources)
        journal = next((own for own in owned if own is not None), call.runtime.coordination.journal)
        fingerprint = digest(canonical(call.values))
        slot = Slot(f"{call.caller.id}:{contract.name}", key, fingerprint, repeatable=not effect)
        try:
            recorded = await outlive(journal.run(slot, encoded))
        except Conflict:
            said = f"Idempotency key conflict: {key!r} was used for other arguments; choose a new key for a new request"
            raise (dialect.conflict or dialect.invalid)(said, idempotency_key=key) from None
        except Unknown:
            call.begun = True
            said = "Timeout of an earlier call with this key; whether its change was made is not known, so look first"
            raise dialect.timeout(said, idempotency_key=key, outcome="unknown") from None
        call.replayed = recorded.replayed
        return orjson.Fragment(recorded.answer)

    return once
