"""Nothing promised in docs/spec is missing or differs, but for what is written down beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from quantdeck import servers
from tests.spec import program
from tests.spec.accounts import KINDS, Account, departures, not_built, proved, to_write
from tests.spec.difference import Difference, differences
from tests.spec.promised import SPECS, promises

ROOT = Path(__file__).parents[2]
SERVERS = [servers.load(name) for name in servers.NAMES]
ENTRIES = [entry for entry in departures() if entry.kind != "prose"]


@cache
def found(spec: str) -> list[Difference]:
    """Every difference between this spec and the program."""
    promised = promises(spec)
    return [*_tools(spec), *differences(promised.facts, _spoken_of(promised.facts, program.facts(spec)), spec=spec)]


def _tools(spec: str) -> Iterator[Difference]:
    promised, actual = promises(spec).tools, program.tools(spec)
    for name in promised.keys() - actual.keys():
        yield Difference(spec, name, "tool", "missing", promised=f"a tool of {promised[name]['server']}")
    for name in actual.keys() - promised.keys():
        yield Difference(spec, name, "tool", "added", actual=f"a tool of {actual[name]['server']}")
    for name in sorted(promised.keys() & actual.keys()):
        yield from differences(promised[name], _spoken_of(promised[name], actual[name]), spec=spec, tool=name)


def _spoken_of(promised, actual):
    """What the spec says nothing of at all (a deadline, say) is ours to choose."""
    return {key: value for key, value in actual.items() if key in promised}


@pytest.mark.parametrize("spec", SPECS)
def test_every_difference_from_the_spec_is_accounted_for(spec):
    accounts: list[Account] = [*ENTRIES, *not_built(), *proved()]
    unlisted = [one for one in found(spec) if not any(account.explains(one) for account in accounts)]
    assert not unlisted, "\n\n".join(["", *map(to_write, unlisted)])


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_a_departure_is_still_one(entry):
    specs = SPECS if entry.spec == "*" else (entry.spec,)
    assert any(entry.explains(one) for spec in specs for one in found(spec)), (
        f"docs/spec/departures.toml is stale: nothing of {entry} is {entry.kind} any more; strike the entry"
    )


def test_what_is_listed_as_not_built_is_not():
    for entry in not_built():
        assert any(entry.explains(one) for one in found(entry.spec)), (
            f"{entry} is built, or was never promised: strike it from docs/spec/not_built.toml"
        )


def test_a_proof_is_a_test_of_something_promised():
    for entry in proved():
        assert "*" not in entry.tool + entry.field, f"{entry}: a test proves one thing; name it"
        assert any(entry.explains(one) for one in found(entry.spec)), (
            f"docs/spec/proved.toml is stale: {entry} is not promised, or is compared as data; strike the entry"
        )
        file, _, function = entry.test.partition("::")
        source = (ROOT / file).read_text()
        assert re.search(rf"^(async )?def {re.escape(function)}\(", source, re.MULTILINE), f"{entry.test} is no test"


def test_every_served_tool_is_held_against_a_spec():
    specs = {one.name: program.spec_of(one.dialect) for server in SERVERS for one in server.contracts}
    unheld = {name: f"docs/spec/{spec}.json" for name, spec in specs.items() if spec not in SPECS}
    assert not unheld, "write down what these specs promise, or nothing of it is checked"


OTHER_FORM = {"get_candles": {".data.items"}}
"""What the compact form of an answer has something else in place of; its caller asked for that form."""


def _left_out(promised, actual, path=""):
    """Members of a promised result that the built schema has and does not require."""
    if "properties" not in actual and "oneOf" in actual:  # several forms: each answer is one of them
        return
    for name, member in promised.get("properties", {}).items():
        here = f"{path}.{name}"
        built = actual.get("properties", {}).get(name, {})
        if name not in actual.get("required", {}):
            yield here
        yield from _left_out(member, built, here)
        yield from _left_out(member.get("items", {}), built.get("items", {}), f"{here}.items")


def test_what_a_result_of_the_first_spec_has_it_always_has():
    """The departure `output*.required` says so of all members, and the comparison cannot see one that is not in it."""
    promised, built = promises("tradestream").tools, program.tools("tradestream")
    optional = {
        name: [*_left_out(promised[name]["output"], built[name]["output"])] for name in promised if name in built
    }
    assert {name: left for name, left in optional.items() if set(left) - OTHER_FORM.get(name, set())} == {}
    assert [*_left_out({"properties": {"a": {"items": {"properties": {"b": {}}}}}}, {"required": {"a": True}})] == [
        ".a.items.b"
    ]


def test_no_departure_names_more_than_its_place():
    """A glob over everything a spec has would hide whatever comes to differ later."""
    assert [str(entry) for entry in ENTRIES if entry.field.count(".") == 1 and entry.field.endswith(".*")] == []


def test_every_departure_says_what_and_why():
    for entry in departures():
        assert entry.kind in KINDS
        assert entry.what.strip()
        assert re.search(r"\((rulings|architecture|issue|docs/adr)\b.*\)$", entry.why.strip()), (
            f"{entry}: end `why` with where it was decided, in brackets: (rulings: …), (architecture: …), (docs/adr/…)"
        )
