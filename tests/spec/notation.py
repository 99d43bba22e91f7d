"""The specs' own ways of writing a shape, as JSON Schema.

The event spec describes results by examples with words in place of values ("decimal | null"), the
chart spec describes one result by a real example.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

__all__ = ["by_example", "by_words", "shape"]

_WORDS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "string (GUID)": {"type": "string", "format": "uuid"},
    "ISO 8601 string": {"type": "string", "format": "date-time"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "decimal": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "object (event-specific JSON)": {"type": "object"},
    "array": {"type": "array"},
    "null": {"type": "null"},
}
_LIST_OF = re.compile(r"array of (\w+)( \| null)?")


def by_words(written: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a result that is described in words. `named` are the shapes that it may mention."""
    if isinstance(written, Mapping):
        return {"type": "object", "properties": {name: by_words(value, named) for name, value in written.items()}}
    if isinstance(written, list):
        return _list(written[0], named)
    alternatives = re.split(r"\s*\|\s*", written)
    if all(word in _WORDS for word in alternatives):
        schemas = [_WORDS[word] for word in alternatives]
        merged = {key: value for schema in schemas for key, value in schema.items()}
        return merged | {"type": schemas[0]["type"] if len(schemas) == 1 else [s["type"] for s in schemas]}
    if any(word in _WORDS for word in alternatives) or " " in "".join(alternatives):
        raise ValueError(f"no such notation: {written!r}")
    return {"type": "string", "enum": alternatives}


def _list(item: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(item, str):
        return {"type": "array", "items": by_words(item, named)}
    found = _LIST_OF.fullmatch(item)
    if found is None:
        raise ValueError(f"no such notation: {item!r}")
    name, nullable = found.groups()
    return {"type": ["array", "null"] if nullable else "array", "items": by_words(named[name], named)}


def by_example(value: Any) -> dict[str, Any]:
    """The schema that this value is an example of."""
    if isinstance(value, Mapping):
        return {"type": "object", "properties": {name: by_example(held) for name, held in value.items()}}
    if isinstance(value, list):
        return {"type": "array", "items": by_example(value[0])}
    return {"type": _type(value)}


def shape(*samples: Any, opaque: Collection[str] = ()) -> Any:
    """What several answers have in common, in words: `{"details": "object|null"}`. `opaque` members hold anything."""
    if all(isinstance(sample, Mapping) for sample in samples):
        names = dict.fromkeys(name for sample in samples for name in sample)
        return {name: _member(name, samples, opaque) for name in names}
    return _words(samples)


def _member(name: str, samples: tuple[Any, ...], opaque: Collection[str]) -> Any:
    held = [sample[name] for sample in samples if name in sample]
    return _words(held) if name in opaque else shape(*held, opaque=opaque)


def _words(samples: Iterable[Any]) -> str:
    found = {_type(sample) for sample in samples}
    if "number" in found:
        found.discard("integer")
    return "|".join(sorted(found, key=lambda name: (name == "null", name)))


def _type(value: Any) -> str:
    kinds = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
        type(None): "null",
    }
    return kinds[type(value)]
