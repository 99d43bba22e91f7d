"""A contract: everything that is promised about one tool. `dialects.declaring` reads it from a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, create_model

from quantdeck.core.errors import ErrorCode

if TYPE_CHECKING:
    from quantdeck.core.call import Call
    from quantdeck.core.dialect import Dialect
    from quantdeck.core.once import Journal

Handler = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a spec says of a tool beside its shape. None and 0 mean: not at all."""

    cache_s: float | None = None
    deadline_s: float = 20.0
    timeout: ErrorCode | None = None  # what a passed deadline is called, where its spec has a code for this tool alone
    p95_ms: float | None = None
    per_minute: int | None = None
    effect: bool = False  # it changes something: once begun it finishes, whatever becomes of the caller
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    forgets: tuple[str, ...] = ()  # tools whose kept answers its effect makes stale
    revised: bool = False  # a kept answer ends also where a source of it has another `revision`
    vary: tuple[str, ...] = ()  # what an answer depends on beside its arguments: `account`, `upstream`, `caller`
    secret: str | None = None  # the name among `Runtime.secrets` of a token that a caller must hold, where it is set


class Source:
    """What a tool may ask for by type: a port's adapter, or rows behind a database."""

    source: str = ""  # its name on the wire
    port: ClassVar[str] = ""  # the folder of adapters it stands for; none where it is rows behind a database
    journal: Journal | None = None  # where its writes can share a transaction with an idempotency key

    @classmethod
    def from_call(cls, call: Call) -> Self:
        opened: Self = call.runtime.source(cls)
        return opened

    async def ping(self) -> None:
        """Return if it answers; raise a SourceError if it does not."""

    async def revision(self) -> Any:
        """Another one when what it holds has changed. Each call of a `revised` tool asks, so keep it cheap."""

    async def close(self) -> None:
        """Let go of what it holds of its own; a database that others use too is none of it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument: `name` in Python, `wire` in the spec's spelling."""

    name: str
    wire: str
    annotation: Any
    default: Any = ...  # which is pydantic's word for required
    rejects: ErrorCode | None = None

    @property
    def required(self) -> bool:
        return self.default is ...

    @property
    def field(self) -> Any:
        """For pydantic. A default is validated too: 1 for a float is 1.0, or it were another question."""
        return Field(self.default, alias=self.wire, validate_default=self.default is not None)


@dataclass(frozen=True)
class Contract:
    name: str
    description: str
    handler: Handler
    dialect: Dialect
    policy: Policy
    errors: tuple[ErrorCode, ...]
    parameters: tuple[Parameter, ...]
    injected: Mapping[str, Any]
    returns: Any

    @property
    def listed(self) -> str:
        """The name a client sees. Dots are legal, but many clients drop a whole list for one."""
        return self.name.replace(".", "_")

    @cached_property
    def model(self) -> type[BaseModel]:
        """The validator of the arguments, built on first use."""
        config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())
        fields: dict[str, Any] = {p.name: (p.annotation, p.field) for p in self.parameters}
        return create_model(f"{self.name}_arguments", __config__=config, **fields)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        return self.dialect.input_schema(self.model)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        return self.dialect.output_schema(self.returns)

    @cached_property
    def by_wire(self) -> Mapping[str, Parameter]:
        return {parameter.wire: parameter for parameter in self.parameters}

    @cached_property
    def sources(self) -> tuple[type[Source], ...]:
        """The kinds of source it asks for, the one it reports first."""
        return tuple(kind for kind in self.injected.values() if issubclass(kind, Source))

    @cached_property
    def may_answer(self) -> frozenset[str]:
        """Codes it may answer: its own and those every tool of its spec has."""
        return frozenset(code.code for code in (*self.errors, *self.dialect.common))
