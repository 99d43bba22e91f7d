"""A tool's contract, read once from its function: the only place where it is written down.

    parameters   the input schema; each needs a description
    annotations of a class with `from_call`   injected (Now, Caller, Progress, a Source); never on the wire
    return type  the output schema
    docstring    the description
    errors       the codes it may answer; a code the function names and does not declare fails the import
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from quantdeck.core.errors import DeclarationError, ErrorCode, Rejects
from quantdeck.core.schema import input_schema, output_schema, violation

if TYPE_CHECKING:
    from quantdeck.core.call import Call
    from quantdeck.core.dialect import Dialect
    from quantdeck.core.journal import Journal

__all__ = ["Clamp", "Contract", "Handler", "Parameter", "Policy", "Source", "read"]

Handler = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Clamp:
    """A whole number of at least `low`; above `high` it is cut to `high`, which the answer echoes."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda value: min(value, self.high), core_schema.int_schema(ge=self.low, strict=True)
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "maximum": self.high}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a spec says of a tool beside its shape. None and 0 mean: not at all."""

    cache_s: float | None = None
    deadline_s: float = 20.0
    p95_ms: float | None = None
    per_minute: int | None = None
    effect: bool = False
    """It changes something: once begun it finishes, whatever becomes of the caller."""
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    vary: tuple[str, ...] = ()
    """What an answer depends on beside its arguments: `account`, `upstream`, `caller`."""
    secret: str | None = None
    """The setting whose token a caller must hold, where it is set."""
    check_output: bool = False
    """Hold each answer against the output schema, not only in tests."""


class Source:
    """What a tool may ask for by type: a port's adapter, or rows behind a database.

    `source` is its name on the wire. One whose writes can share a transaction with an idempotency
    key says so by having a `journal`.
    """

    source: str = ""
    journal: Journal | None = None

    @classmethod
    def from_call(cls, call: Call) -> Source:
        """The open instance of this kind."""
        return call.runtime.source(cls)

    async def ping(self) -> None:
        """Return if it answers; raise a SourceError if it does not."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument: `name` in Python, `wire` in the spec's spelling."""

    name: str
    wire: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    rejects: ErrorCode | None = None

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Contract:
    """Everything that is promised about one tool."""

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

    @property
    def title(self) -> str:
        return self.name.replace(".", " ").replace("_", " ").capitalize()

    @cached_property
    def model(self) -> type[BaseModel]:
        """The validator of the arguments, built on first use."""
        config = ConfigDict(
            strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
        )
        fields: dict[str, Any] = {p.name: _field(p) for p in self.parameters}
        return create_model(f"{self.name}_arguments", __config__=config, **fields)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        return input_schema(self.model)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        return self.dialect.wrap(output_schema(self.returns))

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

    @cached_property
    def check_output(self) -> Callable[[bytes], str | None]:
        """What is wrong with an answer's data by the published schema; None if nothing is."""
        return violation(output_schema(self.returns))

    @property
    def annotations(self) -> dict[str, bool]:
        """The hints a client decides by whether to ask its user."""
        policy = self.policy
        return {
            "readOnlyHint": not policy.effect,
            "destructiveHint": policy.destructive,
            "idempotentHint": policy.idempotent or not policy.effect,
            "openWorldHint": policy.open_world,
        }


def read(
    handler: Handler,
    *,
    dialect: Dialect,
    policy: Policy,
    errors: tuple[ErrorCode, ...] = (),
    name: str | None = None,
    extra: Mapping[str, tuple[Any, Any]] | None = None,
    is_tool: bool = True,
) -> Contract:
    """The contract of `handler`. `extra` are parameters that the dialect adds and its stages consume."""
    where = f"{handler.__module__}.{handler.__name__}"
    name = name or handler.__name__
    hints = _hints(handler, where)
    if not (handler.__doc__ or "").strip():
        raise DeclarationError(f"{where} has no docstring; it becomes the tool's description")
    if "return" not in hints:
        raise DeclarationError(f"{where} has no return type; it becomes the output schema")
    injected: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for parameter in inspect.signature(handler).parameters.values():
        annotation = hints.get(parameter.name)
        if annotation is None:
            raise DeclarationError(f"{where}: annotate the parameter {parameter.name!r}")
        if hasattr(annotation, "from_call"):
            injected[parameter.name] = annotation
        else:
            parameters.append(_parameter(parameter.name, annotation, parameter.default, dialect))
    for extra_name, (annotation, default) in (extra or {}).items():
        parameters.append(_parameter(extra_name, annotation, default, dialect))
    _check(where, parameters, errors, dialect, handler, hints["return"])
    if is_tool and not _is_object(hints["return"]):
        raise DeclarationError(f"{where} must return an object; clients refuse other roots")
    return Contract(
        name=name,
        description=inspect.cleandoc(handler.__doc__ or ""),
        handler=handler,
        dialect=dialect,
        policy=policy,
        errors=errors,
        parameters=tuple(parameters),
        injected=injected,
        returns=hints["return"],
    )


def _hints(handler: Handler, where: str) -> dict[str, Any]:
    if not inspect.iscoroutinefunction(handler):
        raise DeclarationError(f"{where} must be `async def`")
    try:
        return get_type_hints(handler, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise _unresolved(where, error) from error


def _unresolved(where: str, error: Exception) -> DeclarationError:
    return DeclarationError(f"{where}: an annotation cannot be read ({error}); import it outside TYPE_CHECKING")


def _parameter(name: str, annotation: Any, default: Any, dialect: Dialect) -> Parameter:
    marks = getattr(annotation, "__metadata__", ())
    rejects = next((mark.code for mark in reversed(marks) if isinstance(mark, Rejects)), None)
    return Parameter(
        name, dialect.spell(name), _numbers(annotation, dialect), default, rejects
    )


def _field(parameter: Parameter) -> tuple[Any, Any]:
    default = ... if parameter.required else parameter.default
    validate = parameter.default is not None  # 1 for a float is 1.0, or it were another question
    return parameter.annotation, Field(default, alias=parameter.wire, validate_default=validate)


def _numbers(annotation: Any, dialect: Dialect) -> Any:
    """JSON has one kind of number: 5.0 is an integer. Some specs take numerals in strings as well."""
    base, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if get_origin(base) is list:
        base = list[_numbers(get_args(base)[0], dialect)]  # type: ignore[misc]
    elif any(get_origin(member) is list for member in get_args(base)):
        base = Union[tuple(_numbers(member, dialect) for member in get_args(base))]  # noqa: UP007 - made of a tuple
    members = set(get_args(base)) - {NoneType} or {base}
    if not members <= {int, float}:
        return Annotated[base, *marks] if marks else base
    kind = int if members == {int} else float

    def number(value: Any) -> Any:
        if isinstance(value, float) and kind is int and value.is_integer():
            value = int(value)
        elif dialect.numerals and isinstance(value, str):
            value = _numeral(value, kind)
        if kind is int and isinstance(value, int) and abs(value) >= 2**63:
            raise ValueError("is beyond 64 bits")
        return value

    return Annotated[base, *marks, BeforeValidator(number)]


def _numeral(text: str, kind: type[int | float]) -> Any:
    try:
        return kind(text) if text.strip() == text and "_" not in text else text
    except ValueError:
        return text


def _check(  # noqa: PLR0913 - one declaration, looked at from all sides
    where: str,
    parameters: list[Parameter],
    errors: tuple[ErrorCode, ...],
    dialect: Dialect,
    handler: Handler,
    returns: Any,
) -> None:
    known = {*errors, *dialect.common}
    for parameter in parameters:
        if _description(parameter.annotation) is None:
            raise DeclarationError(
                f"{where}: describe {parameter.name!r} with Annotated[…, Field(description=…)]"
            )
        if parameter.rejects is not None and parameter.rejects not in known:
            raise DeclarationError(
                f"{where}: {parameter.name!r} rejects with {parameter.rejects.code}; "
                "add that code to `errors`"
            )
    for name in _names(inspect.unwrap(handler).__code__):
        named = getattr(handler, "__globals__", {}).get(name)
        if isinstance(named, ErrorCode) and named not in known:
            raise DeclarationError(f"{where} names {named.code}; add that code to `errors`")
    for annotation in (*(p.annotation for p in parameters), returns):
        try:
            _finite(annotation, (), where)
        except NameError as error:
            raise _unresolved(where, error) from error


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):  # a function, lambda or comprehension inside
            yield from _names(inner)


def _description(annotation: Any) -> str | None:
    marks = getattr(annotation, "__metadata__", ())
    found = (m.description for m in reversed(marks) if isinstance(m, FieldInfo) and m.description)
    return next(found, None)


def _is_object(annotation: Any) -> bool:
    kind = get_origin(annotation) or annotation
    if kind is Annotated:
        return _is_object(get_args(annotation)[0])
    if kind in (Union, UnionType):
        return all(map(_is_object, get_args(annotation)))
    return isinstance(kind, type) and (issubclass(kind, (Mapping, BaseModel)) or dataclasses.is_dataclass(kind))


def _finite(annotation: Any, inside: tuple[Any, ...], where: str) -> None:
    """Refuse a type that contains itself: its schema would need references."""
    if annotation in inside:
        raise DeclarationError(
            f"{where}: {getattr(annotation, '__name__', annotation)} contains itself; "
            "flatten it, a published schema holds no references"
        )
    for held in _held_types(annotation):
        if not isinstance(held, TypeVar):
            _finite(held, (*inside, annotation), where)


_WITH_FIELDS = ("__dataclass_fields__", "__required_keys__", "model_fields", "_fields")


def _held_types(annotation: Any) -> tuple[Any, ...]:
    kind = get_origin(annotation) or annotation
    arguments = tuple(a for a in get_args(annotation) if isinstance(a, type) or get_origin(a))
    if not isinstance(kind, type):
        return arguments
    if any(hasattr(kind, mark) for mark in _WITH_FIELDS):
        return (*arguments, *get_type_hints(kind).values())
    return arguments

