"""The answer cache: what counts as the same question, and for how long its answer stands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from quantdeck.core.wire import canonical, digest, encode
from quantdeck.flights import Entry

if TYPE_CHECKING:
    from quantdeck.core.call import Call, Proceed, Wrapper
    from quantdeck.core.contract import Contract


def cache(contract: Contract) -> Wrapper | None:
    """Answer a question again without asking its source, while the spec's time to live lasts."""
    policy = contract.policy
    if policy.cache_s is None or policy.effect:
        return None

    async def cached(proceed: Proceed, call: Call) -> Any:
        ttl_s = call.runtime.cache_ttl_s.get(contract.name, policy.cache_s)
        if not ttl_s:
            return await proceed(call)
        revisions = [await call.runtime.source(kind).revision() for kind in contract.sources if policy.revised]
        key = call.cache_key = _key(call, revisions)
        flights = call.runtime.flights
        entry = None if call.refresh else flights.fresh(key)
        call.cached = entry is not None
        if entry is None:
            ask = partial(_ask, proceed, call, key, ttl_s)
            entry = await flights.join(key, ask, call.runtime.tasks, refresh=call.refresh)
        else:
            call.ttl_left_s = entry.expires_at - flights.clock()
        call.source = entry.source
        return orjson.Fragment(entry.data)

    return cached


async def _ask(proceed: Proceed, call: Call, key: bytes, ttl_s: float) -> Entry:
    clock, shared, name = call.runtime.flights.clock, call.runtime.coordination, digest(key)
    asked_at = clock()
    if shared.shared and not call.refresh and (found := await shared.get(name)) is not None:
        call.cached, call.ttl_left_s = True, found[1]
        source, _, data = found[0].partition(b"\n")
        return Entry(data, source.decode(), asked_at, clock() + found[1])
    data = encode(await proceed(call))
    if shared.shared:
        await shared.put(name, call.source.encode() + b"\n" + data, ttl_s)
    return Entry(data, call.source, asked_at, clock() + ttl_s)


def _key(call: Call, revisions: list[Any]) -> bytes:
    """Tool, arguments, whatever else the answer depends on, and the world's time where it stands."""
    varies = {name: _VARIES[name](call) for name in call.contract.policy.vary}
    fixed = call.now if call.runtime.clock.fixed else None
    return canonical([call.contract.name, call.values, varies, revisions, fixed])


_VARIES: dict[str, Callable[[Call], str | None]] = {
    "account": lambda call: call.caller.account,
    "caller": lambda call: call.caller.id,
    "upstream": lambda call: None if call.upstream_token is None else digest(call.upstream_token),
}
