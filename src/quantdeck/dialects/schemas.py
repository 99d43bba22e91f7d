"""JSON Schema as the specs write it: no titles, no references, no null branches for what may be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import BaseModel, TypeAdapter
from pydantic_core import core_schema

__all__ = ["Told", "input_schema", "output_schema", "violation"]

Schema = dict[str, Any]

_BY_NAME = ("properties", "patternProperties")
_IN_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ALONE = ("items", "additionalProperties", "propertyNames")
_UNWANTED = ("title", "discriminator", "$ref", "$defs")


@dataclass(frozen=True, slots=True)
class Told:
    """An argument of which the tool itself says what is wrong, together with all else: `Annotated[Any, Told("array")]`.

    Whatever was given reaches the tool, and None where nothing was (so its default is None). The published schema has
    its type, and says that it is required where it is.
    """

    kind: str
    required: bool = True

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.any_schema()

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Schema:
        return {"type": self.kind, _REQUIRED: self.required}


_REQUIRED = "told to be required"


def input_schema(model: type[BaseModel]) -> Schema:
    """A tool's parameters. Null stands for absent there, so the published schema leaves it out."""
    schema = model.model_json_schema(mode="validation")
    schema = {"properties": {}, **_plain(schema, schema.get("$defs", {}))}
    schema["properties"] = {name: _without_null(parameter) for name, parameter in schema["properties"].items()}
    told = [name for name, parameter in schema["properties"].items() if parameter.pop(_REQUIRED, False)]
    if told:
        schema["required"] = [*schema.get("required", ()), *told]
    return _ordered(schema)


def output_schema(annotation: Any) -> Schema:
    """A tool's result. Its root must be an object: older clients refuse anything else."""
    schema = TypeAdapter(annotation).json_schema(mode="serialization")
    schema = _plain(schema, schema.get("$defs", {}))
    if "anyOf" in schema:
        # Legacy clients want `type` at the root also where the branches say it.
        schema = {"type": "object", "oneOf": schema.pop("anyOf"), **schema}
    return _ordered(schema)


def violation(schema: Schema) -> Callable[[bytes], str | None]:
    """A check of encoded data: what is wrong with it by this schema, or None."""
    from jsonschema_rs import Draft202012Validator

    validator = Draft202012Validator(schema, validate_formats=True)

    def check(encoded: bytes) -> str | None:
        problem = next(iter(validator.iter_errors(orjson.loads(encoded))), None)
        return None if problem is None else f"{'/'.join(map(str, problem.instance_path))}: {problem.message}"

    return check


def _plain(schema: Any, definitions: Schema) -> Any:
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]] | schema
    plain = {key: held for key, held in schema.items() if key not in _UNWANTED}
    for key, held in plain.items():
        if key in _BY_NAME:
            plain[key] = {name: _plain(one, definitions) for name, one in held.items()}
        elif key in _IN_LISTS:
            plain[key] = [_plain(one, definitions) for one in held]
        elif key in _ALONE:
            plain[key] = _plain(held, definitions)
    branches = plain.get("anyOf", [])
    if branches and all(set(branch) == {"type"} for branch in branches):
        # `anyOf [{type: number}, {type: null}]` is written `type: [number, null]`.
        plain = {"type": [branch["type"] for branch in plain.pop("anyOf")], **plain}
    says_nothing = {"additionalProperties": True, "items": {}}.items()
    return {key: held for key, held in plain.items() if (key, held) not in says_nothing}


def _without_null(parameter: Schema) -> Schema:
    out = {key: held for key, held in parameter.items() if not (key == "default" and held is None)}
    if isinstance(out.get("type"), list):
        kinds = [kind for kind in out["type"] if kind != "null"]
        out["type"] = kinds[0] if len(kinds) == 1 else kinds
    branches = [branch for branch in out.pop("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        return {**branches[0], **out}
    return {"anyOf": branches, **out} if branches else out


def _ordered(schema: Schema) -> Schema:
    """`type`, then what it holds: the order in which a person reads it."""
    return {key: schema[key] for key in ("type", "description", "properties", "required", *schema) if key in schema}
