"""What holds for all tools of all servers together."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.generator.snapshots import snapshots
from quantdeck import servers
from quantdeck.listing import hints as hints_of
from quantdeck.listing import prompts, resources
from quantdeck.listing import tools as listing
from tests.support.tokens import count

ROOT = Path(__file__).parents[1]
SERVERS = [servers.load(name) for name in servers.NAMES]
TOOLS = [tool for server in SERVERS for tool in server.tools]
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)

MOST_TOKENS = 8000

ANOTHER_WORLD = {"pandas", "polars", "sqlalchemy", "alembic"}
"""Never in a server process, installed or not."""
ONE_ADAPTERS = {"asyncpg"}
"""Only where the settings choose their adapter, which those of a SQLite process do not."""
WHEN_ASKED = {"numpy", "talib", "holidays", "httpx2"}
"""Not before a call needs them: each costs a good part of a cold start."""


def repeated(names: Iterator[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def test_no_two_servers_offer_a_tool_by_the_same_name_in_either_spelling():
    assert not repeated(spelling for tool in TOOLS for spelling in {tool.name, tool.listed})


def test_no_two_servers_offer_a_prompt_or_resource_by_the_same_name():
    assert not repeated(prompt["name"] for prompt in prompts(SERVERS))
    assert not repeated(resource["uri"] for resource in resources(SERVERS))


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_resources_are_prefixed_by_their_server(server):
    for resource in resources([server]):
        assert resource["uri"].startswith((f"{server.name}://", "pyth://")), resource["uri"]


@each_tool
def test_a_listed_name_is_one_that_every_client_takes(tool):
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.listed)


@each_tool
def test_annotations_are_all_set_and_do_not_contradict_each_other(tool):
    hints = hints_of(tool)
    assert hints.keys() == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert all(isinstance(hint, bool) for hint in hints.values())
    assert not (hints["readOnlyHint"] and hints["destructiveHint"])


@each_tool
def test_a_tool_and_each_of_its_parameters_are_described(tool):
    assert tool.description
    for name, parameter in tool.input_schema["properties"].items():
        assert parameter.get("description"), f"{tool.name}: describe {name}"


@each_tool
def test_an_input_schema_is_flat_and_closed(tool):
    schema = tool.input_schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert not schema.keys() & {"anyOf", "oneOf", "allOf"}
    assert set(schema.get("required", ())) <= schema["properties"].keys()


@each_tool
def test_schemas_hold_no_references_and_no_titles(tool):
    for schema in (tool.input_schema, tool.output_schema):
        assert not keywords(schema) & {"$ref", "$defs", "title"}


@each_tool
def test_the_root_of_an_answer_is_an_object(tool):
    assert tool.output_schema["type"] == "object"


@each_tool
def test_errors_are_codes_that_its_spec_can_answer(tool):
    codes = [code.code for code in tool.errors]
    assert not repeated(iter(codes))
    assert set(codes) <= tool.may_answer
    by_code = {code.code: code for code in tool.dialect.common}
    for code in tool.errors:
        assert code.status == by_code.get(code.code, code).status


def keywords(schema: Any) -> set[str]:
    """The keywords of a schema at any depth; the names of members are not keywords."""
    if isinstance(schema, list):
        return {word for held in schema for word in keywords(held)}
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for word, held in schema.items():
        if word in ("properties", "patternProperties"):
            found |= {inner for member in held.values() for inner in keywords(member)}
        elif word not in ("default", "enum", "const", "examples"):
            found |= keywords(held)
    return found


def test_members_called_like_keywords_are_no_keywords():
    assert keywords({"properties": {"title": {"type": "string"}}, "items": {"$ref": "#"}}) == {
        "properties",
        "type",
        "items",
        "$ref",
    }


async def test_the_list_of_all_tools_is_what_the_servers_list():
    listed = {name.split("/")[1]: entry for name, entry in (await snapshots()).items()}
    for told in listing(SERVERS):
        entry = listed[told["name"].replace(".", "_")]
        assert {key: told[key] for key in entry if key in told and key != "name"} == {
            key: entry[key] for key in entry if key in told and key != "name"
        }


async def test_all_tools_together_leave_room_for_a_conversation(capsys):
    entries = (await snapshots()).values()
    shown = [
        json.dumps([entry["name"], entry["description"], entry["inputSchema"]], separators=(",", ":"))
        for entry in entries
    ]
    tokens, how = count(shown)
    with capsys.disabled():
        print(f"\n{len(shown)} tools are {tokens} tokens of name, description and input schema ({how})")  # noqa: T201 - a figure to watch
    assert tokens < MOST_TOKENS


def test_a_server_process_imports_no_data_frames_no_orm_and_no_driver_it_does_not_use(tmp_path):
    for name in ANOTHER_WORLD:  # beside the script, so that whoever tries finds one
        (tmp_path / f"{name}.py").touch()
    script = tmp_path / "serve.py"
    script.write_text(
        "import sys, json\n"
        "from quantdeck.cli import main\n"
        "status = main(['serve', 'all'])\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)\n"
        "raise SystemExit(status)\n"
    )
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    ran = subprocess.run(
        [sys.executable, script],
        input=json.dumps(INITIALIZE) + "\n" + json.dumps(request) + "\n",
        env={"PATH": "/usr/bin:/bin", "QUANTDECK_HOME": str(tmp_path / "home"), "QUANTDECK_LOG_LEVEL": "error"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [len(answer["result"]["tools"]) for answer in answers if answer["id"] == 1] == [len(TOOLS)]
    imported = set(json.loads(ran.stderr.splitlines()[-1]))
    assert not imported & (ANOTHER_WORLD | ONE_ADAPTERS | WHEN_ASKED)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
