"""How an annotated function becomes a contract. What is declared wrongly fails here, at import, with the fix.

parameters   the input schema; each needs a description
annotations of a class with `from_call`   injected (Now, Caller, Progress, a Source); never on the wire
return type  the output schema
docstring    the description
errors       the codes it may answer; a code the function names and does not declare fails the import
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import CodeType, NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from quantdeck.core.contract import Contract, Handler, Parameter, Policy, Source
from quantdeck.core.dialect import Dialect
from quantdeck.core.errors import DeclarationError, ErrorCode, Rejects

__all__ = ["read"]

M = TypeVar("M")


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
    if not inspect.iscoroutinefunction(handler):
        raise DeclarationError(f"{where} must be `async def`")
    if not (handler.__doc__ or "").strip():
        raise DeclarationError(f"{where} has no docstring; it becomes the tool's description")
    try:
        injected, parameters, returns = _signature(handler, dialect, where)
        parameters += [_parameter(key, kind, default, dialect) for key, (kind, default) in (extra or {}).items()]
        for annotation in (*(parameter.annotation for parameter in parameters), returns):
            _check_finite(annotation, (), where)
    except DeclarationError:  # it is a TypeError too
        raise
    except (NameError, AttributeError, TypeError) as error:
        unread = f"{where}: an annotation cannot be read ({error}); import it outside TYPE_CHECKING"
        raise DeclarationError(unread) from error
    if policy.revised and not any(issubclass(kind, Source) for kind in injected.values()):
        raise DeclarationError(f"{where} is revised, and has no source whose revision could tell; ask for one")
    _check_parameters(parameters, {*errors, *dialect.common}, where)
    _check_codes(handler, {*errors, *dialect.common}, where)
    if is_tool and not _is_object(returns):
        raise DeclarationError(f"{where} must return an object; clients refuse other roots")
    return Contract(
        name=name or handler.__name__,
        description=inspect.cleandoc(handler.__doc__ or ""),
        handler=handler,
        dialect=dialect,
        policy=policy,
        errors=errors,
        parameters=tuple(parameters),
        injected=injected,
        returns=returns,
    )


def _signature(handler: Handler, dialect: Dialect, where: str) -> tuple[dict[str, Any], list[Parameter], Any]:
    """What it is given, what it takes and what it returns."""
    hints = get_type_hints(handler, include_extras=True)
    if "return" not in hints:
        raise DeclarationError(f"{where} has no return type; it becomes the output schema")
    injected, parameters = dict[str, Any](), list[Parameter]()
    for parameter in inspect.signature(handler).parameters.values():
        if parameter.name not in hints:
            raise DeclarationError(f"{where}: annotate the parameter {parameter.name!r}")
        annotation = hints[parameter.name]
        if hasattr(annotation, "from_call"):
            injected[parameter.name] = annotation
        else:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            parameters.append(_parameter(parameter.name, annotation, default, dialect))
    return injected, parameters, hints["return"]


def _parameter(name: str, annotation: Any, default: Any, dialect: Dialect) -> Parameter:
    rejects = next((mark.code for mark in _marks(annotation, Rejects)), None)
    return Parameter(name, dialect.spell(name), _numbers(annotation, dialect), default, rejects)


def _marks(annotation: Any, kind: type[M]) -> Iterator[M]:
    """What stands beside the type in `Annotated`, the outermost first."""
    return (mark for mark in reversed(getattr(annotation, "__metadata__", ())) if isinstance(mark, kind))


def _numbers(annotation: Any, dialect: Dialect) -> Any:
    """JSON has one kind of number: 5.0 is an integer. Some specs take numerals in strings as well."""
    base, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if get_origin(base) is list:
        base = list[_numbers(get_args(base)[0], dialect)]  # type: ignore[misc]
    elif get_origin(base) is dict:
        base = dict[get_args(base)[0], _numbers(get_args(base)[1], dialect)]  # type: ignore[misc]
    elif any(get_origin(member) is list for member in get_args(base)):
        base = Union[tuple(_numbers(member, dialect) for member in get_args(base))]  # noqa: UP007 - made of a tuple
    members = set(get_args(base)) - {NoneType} or {base}
    if not members <= {int, float}:
        return Annotated[base, *marks] if marks else base
    kind = int if members == {int} else float
    saturates = any(getattr(mark, "saturates", False) for mark in marks)

    def number(value: Any) -> Any:
        if isinstance(value, float) and kind is int and value.is_integer():
            value = int(value)
        elif dialect.numerals and isinstance(value, str):
            value = _numeral(value, kind)
        if kind is int and isinstance(value, int) and abs(value) >= 2**63:
            if saturates:
                return 2**63 - 1 if value > 0 else -(2**63)
            raise ValueError("is beyond 64 bits")
        return value

    return Annotated[base, *marks, BeforeValidator(number)]


def _numeral(text: str, kind: type[int | float]) -> Any:
    try:
        return kind(text) if text.strip() == text and "_" not in text else text
    except ValueError:
        return text


def _check_parameters(parameters: list[Parameter], known: set[ErrorCode], where: str) -> None:
    for parameter in parameters:
        if not any(mark.description for mark in _marks(parameter.annotation, FieldInfo)):
            raise DeclarationError(f"{where}: describe {parameter.name!r} with Annotated[…, Field(description=…)]")
        if parameter.rejects is not None and parameter.rejects not in known:
            code = parameter.rejects.code
            raise DeclarationError(f"{where}: {parameter.name!r} rejects with {code}; add that code to `errors`")


def _check_codes(handler: Handler, known: set[ErrorCode], where: str) -> None:
    for name in _names(inspect.unwrap(handler).__code__):
        named = getattr(handler, "__globals__", {}).get(name)
        if isinstance(named, ErrorCode) and named not in known:
            raise DeclarationError(f"{where} names {named.code}; add that code to `errors`")


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):  # a function, lambda or comprehension inside
            yield from _names(inner)


def _is_object(annotation: Any) -> bool:
    kind = get_origin(annotation) or annotation
    if kind is Annotated:
        return _is_object(get_args(annotation)[0])
    if kind in (Union, UnionType):
        return all(map(_is_object, get_args(annotation)))
    return isinstance(kind, type) and (issubclass(kind, Mapping) or dataclasses.is_dataclass(kind))


def _check_finite(annotation: Any, inside: tuple[Any, ...], where: str) -> None:
    """Refuse a type that contains itself: its schema would need references. And one that cannot be kept."""
    if isinstance(annotation, type) and (said := _unfit(annotation)):
        raise DeclarationError(f"{where}: {annotation.__name__} is {said}")
    if annotation in inside:
        name = getattr(annotation, "__name__", annotation)
        raise DeclarationError(f"{where}: {name} contains itself; flatten it, a published schema holds no references")
    for held in _held_types(annotation):
        _check_finite(held, (*inside, annotation), where)


def _unfit(kind: type) -> str | None:
    if issubclass(kind, BaseModel):
        return "a pydantic model, which kept answers and keys cannot hold; make it a frozen dataclass"
    if issubclass(kind, Decimal):
        return "no type of JSON; use float, or str where every digit counts"
    if sys.version_info < (3, 12) and hasattr(kind, "__required_keys__") and type(kind).__module__ == "typing":
        return "a typing.TypedDict, which pydantic cannot read on this Python; import it from typing_extensions"
    return None


_WITH_FIELDS = ("__dataclass_fields__", "__required_keys__", "_fields")


def _held_types(annotation: Any) -> Iterator[Any]:
    kind = get_origin(annotation) or annotation
    yield from (held for held in get_args(annotation) if isinstance(held, type) or get_origin(held))
    if isinstance(kind, type) and any(hasattr(kind, mark) for mark in _WITH_FIELDS):
        yield from (held for held in get_type_hints(kind).values() if not isinstance(held, TypeVar))
