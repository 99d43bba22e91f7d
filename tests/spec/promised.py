"""What the specs promise: docs/spec/*.json as trees that can be compared with the program.

Nothing written there is passed over: what has no place in a tool's schemas or policy stays under
its own name, and must be found in the program under that name or be accounted for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.spec.difference import ANY, tidy
from tests.spec.notation import by_example, by_words, shape

__all__ = ["SPECS", "Promises", "event_result", "examples", "promises", "raw"]

FOLDER = Path(__file__).parents[2] / "docs" / "spec"
SPECS = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))

Raw = dict[str, Any]

# Our own notes in the files, and examples, which `examples` reads.
_NO_PROMISES = {"seed", "family", "planned", "examples", "example_request", "example_response"}


@dataclass(frozen=True, slots=True)
class Promises:
    """One spec: its tools by name, and what it says of the whole."""

    tools: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, Any]


@cache
def raw(spec: str) -> Raw:
    """The file as it is."""
    contents: Raw = json.loads((FOLDER / f"{spec}.json").read_text())
    return contents


@cache
def promises(spec: str) -> Promises:
    """What this spec promises."""
    contents = deepcopy({key: value for key, value in raw(spec).items() if key not in _NO_PROMISES})
    read_tool, read_facts = _READERS.get(spec, (_plain_tool, _plain_facts))
    tools = {tool["name"]: read_tool(_left(tool), contents) for tool in contents.pop("tools")}
    return Promises(tools, read_facts(contents))


def examples(spec: str) -> list[tuple[str, Raw | None, Any]]:
    """(tool, arguments or None, result or None) of every example call that the spec prints."""
    found: list[tuple[str, Raw | None, Any]] = []
    for tool in raw(spec)["tools"]:
        found += [(example["name"], example["arguments"], None) for example in tool.get("examples", ())]
        if tool.get("example_request") or tool.get("example_response"):
            found.append((tool["name"], tool["example_request"], tool["example_response"]))
    return found


def _left(tool: Raw) -> Raw:
    """A tool without its name and notes; its parameters already as a tree."""
    out = {key: value for key, value in tool.items() if key not in _NO_PROMISES and not key.endswith("_superseded")}
    out["input"] = tidy(out.pop("input_schema"))
    del out["name"]
    return out


def _plain_tool(tool: Raw, contents: Raw) -> Raw:
    """Where everything has the name that it has here: `errors`, `annotations`, `timeout_ms` and so on."""
    del contents
    tool["output"] = tidy(tool.pop("output_schema"))
    return tool


def _plain_facts(contents: Raw) -> Raw:
    return contents


def _tradestream_tool(tool: Raw, contents: Raw) -> Raw:
    metadata = by_words(contents["envelope_ok"]["_metadata"], {})
    data = tool.pop("data_schema")
    tool["output"] = tidy({"type": "object", "properties": {"data": data, "_metadata": metadata}})
    tool["adapters"] = {tool.pop("source"): ANY}
    tool["errors"] = {error["code"]: error["description"] for error in tool["errors"]}
    return tool


def _tradestream_facts(contents: Raw) -> Raw:
    del contents["envelope_ok"]  # part of every tool's output
    contents["transports"] = _names(contents["transports"])
    return contents


def _chart_tool(tool: Raw, contents: Raw) -> Raw:
    del contents
    example = tool.pop("result_example", None)
    tool["output"] = tidy(by_example(example) if example else tool.pop("result_schema"))
    return tool


def _chart_facts(contents: Raw) -> Raw:
    contents["error_data_example"] = shape(contents["error_data_example"], opaque={"data"})
    contents["transports"] = _names(contents["transports"])
    return contents


def event_result(name: str, contents: Raw) -> Raw:
    """The schema of one of the event spec's results."""
    results = contents["results"]
    named = {
        "EventEntity": results["EventQueryResult"]["events"][0],
        "EventType": " | ".join(contents["event_types"]),
    }
    return by_words(results[name], named)


def _events_tool(tool: Raw, contents: Raw) -> Raw:
    tool["output"] = tidy(event_result(tool.pop("result"), contents))
    return tool


def _events_facts(contents: Raw) -> Raw:
    del contents["results"]  # the tools' outputs
    del contents["categories_ruled"]
    return contents


def _catalog_tool(tool: Raw, contents: Raw) -> Raw:
    tool["description"] = tool.pop("purpose")
    tool["errors"] = tool.pop("failure_modes")
    return _plain_tool(tool, contents)


def _pyth_tool(tool: Raw, contents: Raw) -> Raw:
    tool["annotations"] = contents["annotations"]
    if "llm_description" in tool:
        tool["description"] = tool.pop("llm_description")
    written = [*tool.pop("item_fields", ()), *tool.pop("result_fields", ()), *tool.pop("result_metadata", ())]
    if "list_key_ruled" in tool:
        written.append(tool.pop("list_key_ruled"))
    tool["fields"] = dict.fromkeys(written, ANY)
    return tool


def _pyth_facts(contents: Raw) -> Raw:
    del contents["annotations"]  # every tool's
    del contents["upstream"]["history"]["ruled"]
    contents["settings"] = {name: default for name, (_, default) in contents["settings"].items()}
    contents["flags"] = {flag: ANY for flag, _ in raw("pyth")["settings"].values() if flag is not None}
    for key in ("transports", "log_fields", "log_optional", "log_levels"):
        contents[key] = _names(contents[key])
    contents["log_enums"] = {field: _names(values) for field, values in contents["log_enums"].items()}
    return contents


def _names(names: list[str]) -> dict[str, Any]:
    return dict.fromkeys(names, ANY)


_READERS: dict[str, tuple[Callable[[Raw, Raw], Raw], Callable[[Raw], Raw]]] = {
    "tradestream": (_tradestream_tool, _tradestream_facts),
    "chart_signals": (_chart_tool, _chart_facts),
    "backtest_events": (_events_tool, _events_facts),
    "catalog": (_catalog_tool, _plain_facts),
    "pyth": (_pyth_tool, _pyth_facts),
}
"""Specs that write things in a way of their own."""
