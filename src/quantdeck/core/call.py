"""One call, and the stages that every call passes through, outermost first.

`STAGES` is the order of work and the only place where it stands. A stage is a function of the
contract that answers a wrapper, or None where the contract has no use for it; so a tool's chain is
built once and holds only what its policy needs.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import uuid4

from pydantic import ValidationError

from quantdeck.core.cache import Flights, cache
from quantdeck.core.clock import Clock, Now
from quantdeck.core.contract import Contract, Source
from quantdeck.core.errors import ErrorCode, RejectedValue, SourceError, ToolError
from quantdeck.core.limits import Grant, limit_rate
from quantdeck.core.observe import Observer, observe
from quantdeck.core.once import run_once
from quantdeck.core.wire import Answer, RpcFailure, encode

if TYPE_CHECKING:
    from quantdeck.core.journal import Journal

__all__ = ["STAGES", "Call", "Caller", "Coordination", "Progress", "Runtime", "Tasks", "chain"]

log = logging.getLogger(__name__)

Proceed = Callable[["Call"], Awaitable[Any]]
Stage = Callable[[Contract], "Callable[[Proceed], Proceed] | None"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: made by the transport, believed by everything behind it."""

    id: str
    scopes: frozenset[str] = frozenset({"*"})
    servers: frozenset[str] = frozenset({"*"})
    account: str | None = None
    secret: str | None = field(default=None, repr=False)
    """SHA-256 of the token that was presented."""

    def may(self, scope: str) -> bool:
        return not self.scopes.isdisjoint((scope, "*"))

    def sees(self, server: str) -> bool:
        return not self.servers.isdisjoint((server, "*"))

    def holds(self, token: str) -> bool:
        """Whether the token that was presented is this one, compared in constant time."""
        wanted = sha256(token.encode()).hexdigest()
        return hmac.compare_digest(self.secret or "", wanted)

    @classmethod
    def from_call(cls, call: Call) -> Caller:
        return call.caller


class Progress:
    """How far a long call has come. Silent unless the transport has someone to tell."""

    def __init__(self, send: Callable[[float, float | None, str | None], Awaitable[None]] | None = None) -> None:
        self._send = send

    async def __call__(self, done: float, total: float | None = None, message: str | None = None) -> None:
        if self._send is not None:
            await self._send(done, total, message)

    @classmethod
    def from_call(cls, call: Call) -> Progress:
        return call.progress


class Coordination(Protocol):
    """What replicas of one server must agree on: limits, idempotency keys, the shared cache.

    `journal` remembers answers under explicit keys (claim and finish, see `core.journal`).
    """

    @property
    def journal(self) -> Journal: ...

    shared: bool
    """Whether `get` and `put` reach other processes; if not, the cache does not ask."""

    async def take(self, client: str, tool: str, per_minute: int) -> Grant:
        """One call by `client` on `tool`: granted or not, and what is left of the minute."""
        ...

    async def get(self, key: str) -> tuple[bytes, float] | None:
        """A stored answer and the seconds it has left."""
        ...

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Store an answer for others."""
        ...


class Tasks:
    """Work that outlives its caller: begun effects, shared flights. Owned by the running process."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has heard it; nobody waiting is no reason for a warning

    async def finish(self) -> None:
        """Wait for what was begun. Called on the way out, after the last caller has gone."""
        while self._running:
            await asyncio.wait(tuple(self._running))


async def _nobody_listens(uri: str) -> None:
    del uri


@dataclass(slots=True)
class Runtime:
    """What a running program lends to every call."""

    clock: Clock
    coordination: Coordination
    source: Callable[[type[Source]], Any]
    """The open instance of a kind of source."""
    observer: Observer = field(default_factory=Observer)
    flights: Flights = field(default_factory=Flights)
    tasks: Tasks = field(default_factory=Tasks)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings a dialect or tool may look at, by name."""
    cache_ttl_s: Mapping[str, float] = field(default_factory=dict)
    deadline_s: Mapping[str, float] = field(default_factory=dict)
    per_minute: Mapping[str, int] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    changed: Callable[[str], Awaitable[None]] = _nobody_listens
    """Announce that the resource at a URI has changed."""


@dataclass(slots=True)
class Call:
    """One call: what came in, and what its stages find out on the way."""

    contract: Contract
    arguments: Mapping[str, Any]
    runtime: Runtime
    caller: Caller
    server: str = ""
    transport: str = "stdio"
    method: str = "tools/call"
    modern: bool = False
    """The 2026-07-28 protocol, which has its own mind about error codes."""
    progress: Progress = field(default_factory=Progress)
    request_id: str = field(default_factory=lambda: uuid4().hex)
    session_id: str = ""
    correlation_id: str | None = None
    idempotency_key: str | None = None
    upstream_token: str | None = field(default=None, repr=False)
    user_agent: str | None = None
    peer: str | None = None
    request_bytes: int = 0
    context: Any = None
    """The protocol's own context of the request, for what only it can do."""

    started: float = field(default_factory=time.perf_counter)
    now: Now = field(init=False)
    values: dict[str, Any] = field(default_factory=dict)
    refresh: bool = False
    cached: bool = False
    ttl_left_s: float | None = None
    source: str = ""
    grant: Grant | None = None
    replayed: bool = False
    begun: bool = False
    """An effect is under way, so its outcome can be unknown."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What tools and sources add to the call's event."""

    def __post_init__(self) -> None:
        self.now = self.runtime.clock.now()

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self.started) * 1000


def contain_errors(contract: Contract) -> Callable[[Proceed], Proceed]:
    """Every failure becomes an answer in the words of the spec. The one broad catch."""
    dialect = contract.dialect

    def wrap(proceed: Proceed) -> Proceed:
        async def contained(call: Call) -> Answer | RpcFailure:
            try:
                answer = dialect.success(call, await proceed(call))
                answer.encoded  # noqa: B018 - what cannot be encoded must fail in here
                return answer
            except ToolError as error:
                if error.code.code in contract.may_answer:
                    return dialect.failure(call, error)
                log.error("undeclared_code", extra={"fields": {"tool": contract.name, "code": error.code.code}})
                return dialect.failure(call, _internal(call, dialect.internal))
            except SourceError as error:
                backends = call.runtime.observer.backends
                backends[error.source] = backends.get(error.source, 0) + 1
                log.warning("source_failed", extra={"fields": {"tool": contract.name, "source": error.source, "why": _causes(error)}})
                return dialect.failure(call, dialect.translate(error))
            except Exception:
                log.exception("unexpected", extra={"fields": {"tool": contract.name, "request_id": call.request_id}})
                return dialect.failure(call, _internal(call, dialect.internal))

        return contained

    return wrap


def _internal(call: Call, code: ErrorCode) -> ToolError:
    return code(
        "The server failed in a way it did not foresee; its log has the reason under this request id",
        request_id=call.request_id,
    )


def _causes(error: BaseException) -> str:
    """The sentence and what drivers said beneath it, for the log only."""
    said = [str(error)]
    while (cause := error.__cause__) is not None:
        said.append(f"{type(cause).__name__}: {cause}")
        error = cause
    return " <- ".join(said)


def deadline(contract: Contract) -> Callable[[Proceed], Proceed]:
    """Nothing behind this takes longer, waiting for a pool, a store or another's flight included."""
    policy, code = contract.policy, contract.dialect.timeout

    def wrap(proceed: Proceed) -> Proceed:
        async def bounded(call: Call) -> Any:
            limit_s = call.runtime.deadline_s.get(contract.name, policy.deadline_s)
            try:
                async with asyncio.timeout(limit_s or None) as scope:
                    return await proceed(call)
            except TimeoutError as error:
                if not scope.expired():
                    raise
                raise _too_late(call, code, limit_s) from error

        return bounded

    return wrap


def _too_late(call: Call, code: ErrorCode, limit_s: float) -> ToolError:
    limit_ms = round(limit_s * 1000)
    if call.begun:
        return code(
            f"Timeout after {limit_ms} ms with the change under way; whether it was made is not known. "
            "Retry with the same idempotency key, or look before you repeat it",
            timeout_ms=limit_ms,
            outcome="unknown",
        )
    changed = {"outcome": "not_started"} if call.contract.policy.effect else {}
    return code(f"Timeout after {limit_ms} ms; try again or ask for less", timeout_ms=limit_ms, **changed)


def authorize(contract: Contract) -> Callable[[Proceed], Proceed]:
    """May this caller use this tool?"""
    scope = "write" if contract.policy.effect else "read"
    secret, code = contract.policy.secret, contract.dialect.unauthorized

    def wrap(proceed: Proceed) -> Proceed:
        async def authorized(call: Call) -> Any:
            if not (call.caller.may(scope) and call.caller.sees(call.server)):
                raise code(
                    f"Unauthorized: {call.caller.id} may not use {contract.name}; "
                    f"its token needs the scope {scope!r} and the server {call.server!r}",
                    scope=scope,
                    server=call.server,
                )
            wanted = call.runtime.secrets.get(secret) if secret else None
            if wanted and not call.caller.holds(wanted):
                raise code(f"Unauthorized: {contract.name} needs the {secret} token of this server")
            return await proceed(call)

        return authorized

    return wrap


def validate(contract: Contract) -> Callable[[Proceed], Proceed]:
    """Arguments become values of the declared types, or the spec's own code for what is wrong."""
    optional = frozenset(p.wire for p in contract.parameters if not p.required)

    def wrap(proceed: Proceed) -> Proceed:
        async def validated(call: Call) -> Any:
            given = {k: v for k, v in call.arguments.items() if v is not None or k not in optional}
            try:
                encode(given)
                values = contract.model.__pydantic_validator__.validate_python(given)
            except ValidationError as error:
                raise _refusal(contract, error) from None
            except TypeError:  # orjson's
                raise contract.dialect.invalid(
                    "Invalid arguments: text that is no Unicode, an integer beyond 64 bits or too deep a nesting"
                ) from None
            call.values = dict(values.__dict__)
            call.refresh = call.values.pop("force_refresh", False)
            return await proceed(call)

        return validated

    return wrap


_SAID = {
    "missing": ("required", "is required"),
    "extra_forbidden": ("additionalProperties", "is not an argument of this tool"),
    "int_type": ("type", "must be an integer"),
    "int_from_float": ("type", "must be an integer"),
    "float_type": ("type", "must be a number"),
    "finite_number": ("type", "must be a finite number"),
    "string_type": ("type", "must be a string"),
    "bool_type": ("type", "must be true or false"),
    "list_type": ("type", "must be a list"),
    "dict_type": ("type", "must be an object"),
    "literal_error": ("enum", "must be one of {expected}"),
    "greater_than_equal": ("minimum", "must be at least {ge}"),
    "greater_than": ("exclusiveMinimum", "must be greater than {gt}"),
    "less_than_equal": ("maximum", "must be at most {le}"),
    "less_than": ("exclusiveMaximum", "must be less than {lt}"),
    "string_too_short": ("minLength", "must have at least {min_length} characters"),
    "string_too_long": ("maxLength", "must have at most {max_length} characters"),
    "string_pattern_mismatch": ("pattern", "must match {pattern}"),
    "too_short": ("minItems", "must have at least {min_length} items"),
    "too_long": ("maxItems", "must have at most {max_length} items"),
}


def _refusal(contract: Contract, error: ValidationError) -> ToolError:
    problems = error.errors(include_url=False, include_input=False)
    said = [_problem(contract, problem) for problem in problems[:20]]
    first = problems[0]
    parameter = contract.by_wire.get(str(first["loc"][0])) if first["loc"] else None
    code = (parameter and parameter.rejects) or contract.dialect.invalid
    cause = first.get("ctx", {}).get("error")
    details: dict[str, Any] = {"invalid_arguments": said}
    if isinstance(cause, RejectedValue):
        details |= cause.details
    sentence = "; ".join(f"{entry['argument']} {entry['problem']}" for entry in said[:5])
    return code(f"Invalid arguments: {sentence}", **details)


def _problem(contract: Contract, problem: Any) -> dict[str, str]:
    kind, context = problem["type"], problem.get("ctx", {})
    rule, words = _SAID.get(kind, ("value", problem["msg"][:1].lower() + problem["msg"][1:]))
    if kind == "value_error":
        words = str(context["error"])
    elif kind == "extra_forbidden":
        words += "; it takes " + (", ".join(contract.by_wire) or "none")
    else:
        words = words.format(**context) if kind in _SAID else words
    path = ".".join(str(step)[:80] for step in problem["loc"])
    return {"argument": path or "arguments", "rule": rule, "problem": words}


def handle(contract: Contract) -> Callable[[Proceed], Proceed]:
    """The tool itself, with what it asked to be given."""
    dialect = contract.dialect
    givers = tuple((name, kind.from_call) for name, kind in contract.injected.items())
    reported = contract.sources[0] if contract.sources else None
    handler, check = contract.handler, contract.policy.check_output

    def wrap(_: Proceed) -> Proceed:
        async def handled(call: Call) -> Any:
            given = {name: give(call) for name, give in givers}
            if reported is not None:
                call.source = call.runtime.source(reported).source
            try:
                data = await handler(**given, **call.values)
            except ExceptionGroup as group:  # a task group's: the first failure speaks for all
                raise _first(group) from group
            if check and (problem := contract.check_output(encode(data))) is not None:
                log.error("output_violation", extra={"fields": {"tool": contract.name, "problem": problem}})
                raise (dialect.output_violation or dialect.internal)("The answer does not match its schema")
            return data

        return handled

    return wrap


def _first(error: Exception) -> Exception:
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


STAGES: tuple[Stage, ...] = (
    observe,
    contain_errors,
    deadline,
    authorize,
    limit_rate,
    validate,
    run_once,
    cache,
    handle,
)


async def _nothing(_: Call) -> Any:
    raise AssertionError("the last stage answers")


def chain(contract: Contract) -> Callable[[Call], Awaitable[Answer | RpcFailure]]:
    """All stages of one contract, composed once."""
    proceed: Proceed = _nothing
    for stage in reversed(STAGES):
        wrap = stage(contract)
        if wrap is not None:
            proceed = wrap(proceed)
    return proceed
