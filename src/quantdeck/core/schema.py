"""JSON Schema as the specs write it: no titles, no references, no null branches for what may be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from pydantic import BaseModel, TypeAdapter

__all__ = ["input_schema", "output_schema", "violation"]

Schema = dict[str, Any]

_HELD_BY_NAME = ("properties", "patternProperties")
_HELD_IN_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_HELD = ("items", "additionalProperties", "propertyNames")


def input_schema(model: type[BaseModel]) -> Schema:
    """A tool's parameters. Null stands for absent there, so the published schema leaves it out."""
    schema = _plain(model.model_json_schema(mode="validation"))
    schema.setdefault("properties", {})
    for name, parameter in schema["properties"].items():
        schema["properties"][name] = _without_null(parameter)
    return _ordered(schema)


def output_schema(annotation: Any) -> Schema:
    """A tool's result. Its root must be an object: older clients refuse anything else."""
    schema = _plain(TypeAdapter(annotation).json_schema(mode="serialization"))
    if "anyOf" in schema:
        # Legacy clients want `type` at the root also where the branches say it.
        schema = {"type": "object", "oneOf": schema.pop("anyOf"), **schema}
    return _ordered(schema)


def violation(schema: Schema) -> Callable[[bytes], str | None]:
    """A check of encoded data: what is wrong with it by this schema, or None."""
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - only some specs check as they run

    validator = Draft202012Validator(schema, validate_formats=True)

    def check(encoded: bytes) -> str | None:
        problem = next(iter(validator.iter_errors(orjson.loads(encoded))), None)
        return None if problem is None else f"{'/'.join(map(str, problem.instance_path))}: {problem.message}"

    return check


def _plain(schema: Schema) -> Schema:
    definitions = schema.pop("$defs", {})
    return _inline(schema, definitions)


def _inline(schema: Any, definitions: Schema) -> Any:
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
    out = {k: v for k, v in schema.items() if k not in ("title", "discriminator")}
    for key in _HELD_BY_NAME:
        if key in out:
            out[key] = {name: _inline(held, definitions) for name, held in out[key].items()}
    for key in _HELD_IN_LISTS:
        if key in out:
            out[key] = [_inline(held, definitions) for held in out[key]]
    for key in _HELD:
        if key in out:
            out[key] = _inline(out[key], definitions)
    if out.get("additionalProperties") is True:
        del out["additionalProperties"]
    if out.get("items") == {}:
        del out["items"]
    return _joined(out)


def _joined(schema: Schema) -> Schema:
    """`anyOf [{type: number}, {type: null}]` is written `type: [number, null]`."""
    branches = schema.get("anyOf")
    if branches is None or not all(set(branch) == {"type"} for branch in branches):
        return schema
    rest = {k: v for k, v in schema.items() if k != "anyOf"}
    return {"type": [branch["type"] for branch in branches], **rest}


def _without_null(parameter: Schema) -> Schema:
    out = {k: v for k, v in parameter.items() if not (k == "default" and v is None)}
    if isinstance(out.get("type"), list):
        kinds = [kind for kind in out["type"] if kind != "null"]
        out["type"] = kinds[0] if len(kinds) == 1 else kinds
    branches = [branch for branch in out.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        del out["anyOf"]
        out = {**branches[0], **out}
    elif branches:
        out["anyOf"] = branches
    return out


def _ordered(schema: Schema) -> Schema:
    """`type`, then what it holds: the order in which a person reads it."""
    first = ("type", "description", "properties", "required")
    return {key: schema[key] for key in (*first, *schema) if key in schema}
