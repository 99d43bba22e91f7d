"""docs/tools: one page per server, written from its contracts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from quantdeck.core.contract import Contract
from quantdeck.core.errors import ErrorCode
from quantdeck.core.server import Server
from quantdeck.listing import prompts, resources

__all__ = ["index", "page"]

Schema = dict[str, Any]

# Values for examples, by parameter; any other is made up from its schema.
SAMPLES: dict[str, Any] = {
    "symbol": "BTC/USD",
    "strategy_id": "78846288-bfd7-5a4c-bdef-ae768a577eed",  # one for BTC/USD in the demo world
    "size": 0.01,
    "runId": "4c1f4d0e-0000-4000-8000-000000000000",
    "propertyPath": "$.Price",
    "timestamp": "2026-01-15T09:30:00Z",
    "entityValue": "00000000-0000-4000-8000-000000000000",
}


def index(servers: Iterable[Server]) -> str:
    """The list of all servers."""
    lines = ["# The servers and their tools", "", MADE, ""]
    rows = ((f"[{s.name}]({s.name}.md)", s.purpose, _codes(tool.listed for tool in s.tools)) for s in servers)
    return _text([*lines, *_table(("server", "what it is for", "tools"), rows)])


def page(server: Server) -> str:
    """One server."""
    lines = [f"# {server.name}", "", MADE, "", f"{server.purpose}."]
    if server.instructions:
        lines += ["", "What a model is told of it:", "", f"> {server.instructions}"]
    for tool in server.tools:
        lines += _tool(tool)
    lines += _readable(server)
    lines += _common(server)
    return _text(lines)


MADE = "<!-- Written by docs/generate.py from the contracts. -->"


def _tool(tool: Contract) -> list[str]:
    lines = ["", f"## {tool.listed}", "", tool.description, ""]
    if tool.name != tool.listed:
        lines += [f"The spec's name, `{tool.name}`, can be called as well.", ""]
    lines += ["```", _example(tool), "```", ""]
    parameters = tool.input_schema["properties"]
    if parameters:
        required = tool.input_schema.get("required", ())
        rows = [
            (f"`{name}`", _type(schema), _default(name, schema, required), schema.get("description", ""))
            for name, schema in parameters.items()
        ]
        lines += _table(("parameter", "type", "default", "what it is"), rows)
    else:
        lines.append("It takes no arguments.")
    answers = dict.fromkeys((f"`{path}`", kind, told) for path, kind, told in _fields(tool.output_schema))
    if answers:
        lines += ["", *_table(("answer", "type", "what it is"), answers)]
    if tool.errors:
        lines += ["", *_table(("error", "when"), _errors(tool.errors))]
    return [*lines, "", _policy(tool)]


def _example(tool: Contract) -> str:
    properties = tool.input_schema["properties"]
    given = {name: _sample(name, properties[name]) for name in tool.input_schema.get("required", ())}
    arguments = f" '{json.dumps(given, ensure_ascii=False)}'" if given else ""
    return f"quantdeck call {tool.listed}{arguments}"


def _sample(name: str, schema: Schema) -> Any:
    if name in SAMPLES:
        return SAMPLES[name]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if kind == "array":
        return [_sample("", schema.get("items", {}))]
    samples = {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1), "boolean": True, "object": {}}
    return samples.get(kind, "…")


def _policy(tool: Contract) -> str:
    policy = tool.policy
    told = [f"An answer is cached for {policy.cache_s:g} s." if policy.cache_s else "Answers are not cached."]
    told.append(f"A call is given up after {policy.deadline_s:g} s.")
    if policy.per_minute:
        told.append(f"A client may call it {policy.per_minute} times a minute.")
    if policy.p95_ms:
        told.append(f"95 of 100 calls should take no more than {policy.p95_ms:g} ms.")
    if policy.effect:
        told.append("It changes something: give an idempotency key to be able to repeat it safely.")
    return " ".join(told)


def _readable(server: Server) -> list[str]:
    lines: list[str] = []
    if found := resources([server]):
        rows = [(f"`{entry['uri']}`", entry["mimeType"], entry["description"]) for entry in found]
        lines += ["", "## Resources", "", *_table(("address", "type", "what it is"), rows)]
    for prompt in prompts([server]):
        lines += ["", f"## Prompt: {prompt['name']}", "", prompt["description"]]
        if prompt["arguments"]:
            rows = [
                (f"`{argument['name']}`", "yes" if argument["required"] else "", argument["description"])
                for argument in prompt["arguments"]
            ]
            lines += ["", *_table(("argument", "required", "what it is"), rows)]
    return lines


def _common(server: Server) -> list[str]:
    codes = dict.fromkeys(code for contract in server.contracts for code in contract.dialect.common)
    if not codes:
        return []
    lines = ["", "## Errors that any of these tools may answer", ""]
    return [*lines, *_table(("error", "when"), _errors(codes))]


def _errors(codes: Iterable[ErrorCode]) -> list[tuple[str, ...]]:
    return [(f"`{code.code}`", code.description + (" (worth a retry)" if code.retry else "")) for code in codes]


def _fields(schema: Schema, path: str = "") -> Iterator[tuple[str, str, str]]:
    """(path, type, description) of everything inside an answer."""
    for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from _fields(branch, path)
    if "items" in schema:
        yield from _fields(schema["items"], f"{path}[]")
    for name, held in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        if "properties" not in held:
            yield here, _type(held), held.get("description", "")
        yield from _fields(held, here)


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return _codes(schema["enum"])
    if "const" in schema:
        return _codes([schema["const"]])
    if branches := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(map(_type, branches)))
    kinds = schema.get("type", "anything")
    kind = " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
    if kind == "array" and "type" in schema.get("items", {}):
        kind = f"array of {_type(schema['items'])}"
    bounds = (("from {}", "minimum"), ("above {}", "exclusiveMinimum"), ("to {}", "maximum"), ("{}", "format"))
    limits = [words.format(schema[name]) for words, name in bounds if name in schema]
    return ", ".join([kind, " ".join(limits)] if limits else [kind])


def _default(name: str, schema: Schema, required: Iterable[str]) -> str:
    if name in required:
        return "required"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def _codes(values: Iterable[Any]) -> str:
    return ", ".join(f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in values)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    cells = [head, tuple("---" for _ in head), *(tuple(_cell(cell) for cell in row) for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
