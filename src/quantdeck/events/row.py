"""An event on its way into the file: whatever was handed over becomes a row, with what is wrong with it beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from quantdeck.domain import event_times
from quantdeck.domain.event_aliases import moment
from quantdeck.domain.event_rules import MAX_PROPERTIES_BYTES, Problem, problems
from quantdeck.domain.event_types import (
    CATEGORIES,
    CATEGORY_OF,
    EVENT_TYPES,
    SEVERITIES,
    SEVERITY_OF,
    EventType,
)
from quantdeck.events.ids import derived, guid_bytes

__all__ = ["Given", "Row", "Rules", "row", "time_of", "written"]

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z
_KEPT_OF_OVERLONG = 10_000
"""Characters of properties that are too large to be kept."""

_TYPES = {word: place for place, word in enumerate(EVENT_TYPES)}
_SEVERITIES: dict[str, int] = {word: place for place, word in enumerate(SEVERITIES)}
_CATEGORIES: dict[str, int] = {word: place for place, word in enumerate(CATEGORIES)}
_DEFAULTS = {kind: (_SEVERITIES[SEVERITY_OF[kind]], _CATEGORIES[CATEGORY_OF[kind]]) for kind in EVENT_TYPES}


class Row(NamedTuple):
    """A row of `events`, without what the file makes of it."""

    event_id: bytes
    run: int
    at: int
    type: int
    severity: int
    category: int
    properties: str
    parent: bytes | None
    errors: str | None


class Given(NamedTuple):
    """An event as somebody told it."""

    kind: str
    at: Any
    properties: Any
    parent: Any = None
    severity: str | None = None
    category: str | None = None
    event_id: Any = None
    errors: Sequence[Mapping[str, Any]] | None = None  # what has been found wrong with it before
    checked: bool = False  # it was held against the rules then


@dataclass(slots=True)
class Rules:
    """What is known of a run when its events are looked at."""

    run: int
    run_id: bytes
    started: int | None = None
    ended: int | None = None
    guids: bool = True  # whether an OrderId must be one
    latest: int = 0  # where an event stands whose time cannot be read


def row(given: Given, fresh: bytes, rules: Rules) -> Row:
    """Never fails: what does not fit is kept as far as it can be, and said in `errors`."""
    kind, at, properties, parent, severity, category, event_id, known, checked = given
    wrong: list[Problem] = []
    code = _TYPES.get(kind)  # type: ignore[call-overload]
    if code is None:
        wrong.append(Problem("EventType", f"Unknown event type {str(kind)[:100]!r}"))
        kind, code = "StateChange", _TYPES["StateChange"]
    when = _micros(at, rules, wrong)
    text = _json(kind, properties, rules, wrong, checked=checked)  # type: ignore[arg-type]
    severity_code, category_code = _DEFAULTS[kind]  # type: ignore[index]
    if severity is not None:
        severity_code = _word(_SEVERITIES, severity, severity_code, "Severity", wrong)
    if category is not None:
        category_code = _word(_CATEGORIES, category, category_code, "Category", wrong)
    own = fresh if event_id is None else _id(event_id, "EventId", rules, wrong)
    above = None if parent is None else _id(parent, "ParentEventId", rules, wrong)
    if above == own:
        wrong.append(Problem("ParentEventId", "An event cannot be its own parent"))
        above = None
    errors = _errors(known or (), wrong) if wrong or known else None
    return Row(own, rules.run, when, code, severity_code, category_code, text, above, errors)


def _errors(known: Sequence[Mapping[str, Any]], wrong: list[Problem]) -> str:
    """All that is wrong, each once."""
    entries = [problem.entry() for problem in wrong]
    return orjson.dumps([*known, *(entry for entry in entries if entry not in known)]).decode()


def _micros(at: Any, rules: Rules, wrong: list[Problem]) -> int:
    if type(at) is not datetime:
        at = time_of(at)
    if at is None:
        wrong.append(Problem("Timestamp", "Missing or unreadable; the time of the event before it stands here"))
        return rules.latest
    when = event_times.micros(at)
    if (rules.started is not None and when < rules.started) or (rules.ended is not None and when > rules.ended):
        wrong.append(Problem("Timestamp", "Outside the run's time range", "Warning"))
    rules.latest = max(rules.latest, when)
    return when


def time_of(told: Any) -> datetime | None:
    """A time by whatever name: text, a number since 1970 in the unit of its size, a time of numpy or pandas."""
    if hasattr(told, "item") and not isinstance(told, datetime):
        told = told.item()
    if isinstance(told, (int, float)) and not isinstance(told, bool):
        told = moment(told)
    if isinstance(told, str):
        try:
            return event_times.instant(told)
        except ValueError:
            return None
    return _bare(told) if isinstance(told, datetime) else None


def _bare(told: datetime) -> datetime | None:
    """A time of a kind of its own, such as pandas', whose NaT is none."""
    try:
        return datetime.combine(told.date(), told.timetz())
    except ValueError:
        return None


def _json(kind: EventType, properties: Any, rules: Rules, wrong: list[Problem], *, checked: bool) -> str:
    if not isinstance(properties, Mapping):
        wrong.append(Problem("Properties", "Not a JSON object"))
        return _raw(properties)
    if not checked:
        wrong += problems(kind, properties, guids=rules.guids)
    try:
        text = written(properties if type(properties) is dict else dict(properties))
    except (TypeError, RecursionError, ValueError) as e:
        wrong.append(Problem("Properties", f"Cannot be written as JSON: {str(e)[:200]}"))
        return _raw(properties)
    if len(text) > MAX_PROPERTIES_BYTES:
        wrong.append(Problem("Properties", f"{len(text):,} bytes; at most {MAX_PROPERTIES_BYTES:,} are kept"))
        return _raw(text.decode())
    return text.decode()


def written(value: dict[Any, Any], options: int = 0) -> bytes:
    """As JSON, with numbers to the last digit."""
    try:
        return orjson.dumps(value, _plain, _OPTIONS | options)
    except TypeError as e:
        if "64-bit" not in str(e):
            raise
    return orjson.dumps(_unbounded(value), _plain, _OPTIONS | options)


def _unbounded(value: Any) -> Any:
    """The same where no integer is too large for orjson."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return orjson.Fragment(str(value))
    if isinstance(value, Mapping):
        return {name: _unbounded(one) for name, one in value.items()}
    return [_unbounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):  # every digit, as a number
        return orjson.Fragment(str(value)) if value.is_finite() else None
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, datetime):
        return _bare(value)
    if hasattr(value, "item"):  # a scalar of numpy that its own serializer does not know
        return value.item()
    if isinstance(value, (Enum, UUID)):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON")


def _raw(value: Any) -> str:
    """What cannot be kept as it is, as text."""
    try:
        said = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    except (RecursionError, ValueError) as e:
        said = f"{type(value).__name__} that cannot be written: {e}"
    said = said[:_KEPT_OF_OVERLONG].encode(errors="backslashreplace").decode()
    return orjson.dumps({"_raw": said}).decode()


def _word(codes: dict[str, int], said: Any, otherwise: int, field: str, wrong: list[Problem]) -> int:
    found = codes.get(said) if isinstance(said, str) else None
    if found is None:
        wrong.append(Problem(field, f"Unknown {field.lower()} {str(said)[:100]!r}"))
        return otherwise
    return found


def _id(told: Any, field: str, rules: Rules, wrong: list[Problem]) -> bytes:
    found = guid_bytes(told)
    if found is None:
        wrong.append(Problem(field, f"Invalid GUID format: {str(told)[:100]!r}"))
        return derived(rules.run_id, str(told))
    return found
