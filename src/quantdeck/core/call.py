"""One call, and the stages that every call passes through.

A stage is a function of the contract that answers what to do around the rest of the chain, or None where the contract
has no use for it; so a tool's chain is built once and holds only what its policy needs.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from pydantic import ValidationError

from quantdeck.core.cache import cache
from quantdeck.core.clock import Clock, Now
from quantdeck.core.contract import Contract, Source
from quantdeck.core.errors import ErrorCode, SourceError, ToolError
from quantdeck.core.limits import Grant, limit_rate
from quantdeck.core.observe import Observer, observe
from quantdeck.core.once import Journal, run_once
from quantdeck.core.wire import Answer, RpcFailure, digest, encode
from quantdeck.flights import Flights, Tasks
from quantdeck.ids import fresh_id, usable_id

log = logging.getLogger(__name__)

Proceed = Callable[["Call"], Awaitable[Any]]
Wrapper = Callable[[Proceed, "Call"], Awaitable[Any]]
Stage = Callable[[Contract], Wrapper | None]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: made by the transport, believed by everything behind it."""

    id: str
    scopes: frozenset[str] = frozenset({"*"})
    servers: frozenset[str] = frozenset({"*"})
    account: str | None = None
    secret: str | None = field(default=None, repr=False)  # SHA-256 of the token that was presented

    def may(self, scope: str) -> bool:
        return not self.scopes.isdisjoint((scope, "*"))

    def sees(self, server: str) -> bool:
        return not self.servers.isdisjoint((server, "*"))

    def holds(self, token: str) -> bool:
        return hmac.compare_digest(self.secret or "", digest(token))

    @classmethod
    def from_call(cls, call: Call) -> Caller:
        return call.caller


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long call has come. Silent unless the transport has someone to tell."""

    send: Callable[[float, float | None, str | None], Awaitable[None]] | None = None

    async def __call__(self, done: float, total: float | None = None, message: str | None = None) -> None:
        if self.send is not None:
            await self.send(done, total, message)

    @classmethod
    def from_call(cls, call: Call) -> Progress:
        return call.progress


class Coordination(Protocol):
    """What replicas of one server must agree on: limits, idempotency keys, the shared cache."""

    shared: bool  # whether `get` and `put` reach other processes; if not, the cache does not ask
    journal: Journal

    async def take(self, client: str, tool: str, per_minute: int) -> Grant: ...
    async def get(self, key: str) -> tuple[bytes, float] | None: ...  # what was put, and the seconds it has left
    async def put(self, key: str, value: bytes, ttl_s: float) -> None: ...
    async def first(self, name: str, within_s: float) -> bool: ...  # whether nobody has said this name for so long
    async def close(self) -> None: ...


@dataclass(slots=True)
class Runtime:
    """What a running program lends to every call. Mappings are by a tool's name."""

    clock: Clock
    coordination: Coordination
    source: Callable[[type[Source]], Any]  # the open instance of a kind of source
    observer: Observer = field(default_factory=Observer)
    flights: Flights = field(default_factory=Flights)
    tasks: Tasks = field(default_factory=Tasks)
    cache_ttl_s: Mapping[str, float] = field(default_factory=dict)
    deadline_s: Mapping[str, float] = field(default_factory=dict)
    per_minute: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # settings a dialect may look at, by their own names
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # tokens, by what a policy calls them
    changed: Callable[[str], Awaitable[None]] = lambda _: asyncio.sleep(0)  # tells who watches the resource at a URI


@dataclass(slots=True)
class Call:
    """One call: what came in, and below that what its stages find out on the way."""

    contract: Contract
    arguments: Mapping[str, Any]
    runtime: Runtime
    caller: Caller
    server: str = ""
    transport: str = "stdio"
    method: str = "tools/call"
    modern: bool = False  # the 2026-07-28 protocol, which has its own mind about error codes
    progress: Progress = field(default_factory=Progress)
    request_id: str = field(default_factory=lambda: fresh_id(32))
    session_id: str = ""
    correlation_id: str | None = None
    idempotency_key: str | None = None
    upstream_token: str | None = field(default=None, repr=False)
    user_agent: str | None = None
    peer: str | None = None
    request_bytes: int = 0
    notify: Callable[[str, Any], Awaitable[None]] | None = None  # the connection, while it lasts
    context: Any = None  # the protocol's own context of the request, for what only it can do

    started: float = field(default_factory=time.perf_counter)
    now: Now = field(init=False)
    values: dict[str, Any] = field(default_factory=dict)
    refresh: bool = False
    cached: bool = False
    ttl_left_s: float | None = None
    source: str = ""
    grant: Grant | None = None
    replayed: bool = False
    cache_key: bytes | None = None  # of the question, where its answer may be kept
    begun: bool = False  # an effect is under way, so its outcome can be unknown
    notes: dict[str, Any] = field(default_factory=dict)  # what tools, sources and stages add to the call's event

    def __post_init__(self) -> None:
        self.now = self.runtime.clock.now()
        self.correlation_id = usable_id(self.correlation_id) or f"mcp_{self.request_id[:8]}"

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self.started) * 1000


def contain_errors(contract: Contract) -> Wrapper:
    """Every failure becomes an answer in the words of the spec. The one broad catch."""
    dialect = contract.dialect

    async def told(proceed: Proceed, call: Call) -> Answer | RpcFailure:
        try:
            return dialect.success(call, await proceed(call))
        except ToolError as error:
            if error.code.code not in contract.may_answer:
                raise
            return dialect.failure(call, error)
        except SourceError as error:
            call.notes["failed_source"] = error.source
            fields = {"tool": contract.name, "request_id": call.request_id, "source": error.source, "why": error}
            log.warning("source_failed", extra={"fields": fields})
            return dialect.failure(call, dialect.translate(contract, error))

    async def contained(proceed: Proceed, call: Call) -> Answer | RpcFailure:
        try:
            answer = await told(proceed, call)
            answer.encoded  # noqa: B018 - what cannot be encoded must fail in here
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise  # our own; another's, such as a driver's, is a failure like any
            log.exception("unexpected", extra={"fields": {"tool": contract.name, "request_id": call.request_id}})
            unforeseen = "The server failed in a way it did not foresee; its log has the reason under this request id"
            return dialect.failure(call, dialect.internal(unforeseen, request_id=call.request_id))
        return answer

    return contained


def deadline(contract: Contract) -> Wrapper:
    """Nothing behind this takes longer, waiting for a pool, a store or another's flight included."""
    policy, code = contract.policy, contract.policy.timeout or contract.dialect.timeout

    async def bounded(proceed: Proceed, call: Call) -> Any:
        limit_s = call.runtime.deadline_s.get(contract.name, policy.deadline_s)
        try:
            async with asyncio.timeout(limit_s or None) as scope:
                return await proceed(call)
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise _too_late(call, code, round(limit_s * 1000)) from error

    return bounded


def _too_late(call: Call, code: ErrorCode, limit_ms: int) -> ToolError:
    if call.begun:
        advice = "whether its change was made is not known. Retry with the same idempotency key, or look first"
        return code(f"Timeout after {limit_ms} ms; {advice}", timeout_ms=limit_ms, outcome="unknown")
    changed = {"outcome": "not_started"} if call.contract.policy.effect else {}
    return code(f"Timeout after {limit_ms} ms; try again or ask for less", timeout_ms=limit_ms, **changed)


def authorize(contract: Contract) -> Wrapper:
    """May this caller use this tool?"""
    scope = "write" if contract.policy.effect else "read"
    secret, code = contract.policy.secret, contract.dialect.unauthorized

    async def authorized(proceed: Proceed, call: Call) -> Any:
        if not (call.caller.may(scope) and call.caller.sees(call.server)):
            denied = f"Unauthorized: {call.caller.id} may not use {contract.name}; its token needs"
            raise code(f"{denied} the scope {scope!r} and the server {call.server!r}", scope=scope, server=call.server)
        wanted = call.runtime.secrets.get(secret) if secret else None
        if wanted and not call.caller.holds(wanted):
            raise code(f"Unauthorized: {contract.name} needs the {secret} token of this server")
        return await proceed(call)

    return authorized


def validate(contract: Contract) -> Wrapper:
    """Arguments become values of the declared types, or the spec's own code for what is wrong."""
    optional = frozenset(parameter.wire for parameter in contract.parameters if not parameter.required)

    async def validated(proceed: Proceed, call: Call) -> Any:
        given = {name: value for name, value in call.arguments.items() if value is not None or name not in optional}
        try:
            values = contract.model.__pydantic_validator__.validate_json(encode(given))
        except ValidationError as error:
            raise contract.dialect.refuse(contract, error) from None
        except TypeError:  # orjson's
            said = "Invalid arguments: text that is no Unicode, an integer beyond 64 bits or too deep a nesting"
            raise contract.dialect.invalid(said) from None
        call.values = dict(values.__dict__)
        call.refresh = call.values.pop(contract.dialect.refresh, False)
        return await proceed(call)

    return validated


def handle(contract: Contract) -> Wrapper:
    """The tool itself, with what it asked to be given."""
    handler = contract.handler
    givers = [(name, kind.from_call) for name, kind in contract.injected.items()]

    async def handled(_: Proceed, call: Call) -> Any:
        given = {name: give(call) for name, give in givers}
        try:
            return await handler(**given, **call.values)
        except ExceptionGroup as group:  # a task group's: the first failure speaks for all
            first: Exception = group
            while isinstance(first, ExceptionGroup):
                first = first.exceptions[0]
            raise first from group

    return handled


# The order of work, outermost first, and the only place where it stands.
STAGES: Sequence[Stage] = (observe, contain_errors, deadline, authorize, limit_rate, validate, run_once, cache, handle)


def chain(contract: Contract, stages: Sequence[Stage] = ()) -> Callable[[Call], Awaitable[Answer | RpcFailure]]:
    """All stages of one contract, or those that are said, composed once."""
    proceed: Any = None  # the last stage answers
    for stage in reversed(stages or STAGES):
        if (wrapper := stage(contract)) is not None:
            proceed = partial(wrapper, proceed)
    return proceed  # type: ignore[no-any-return]
