"""`quantdeck tools`, `resources` and `prompts`: what the servers offer."""

from __future__ import annotations

import argparse

import orjson

from quantdeck import listing
from quantdeck.commands import chosen_servers

__all__ = ["add", "run"]

_KINDS = {
    "tools": (listing.tools, "name"),
    "resources": (listing.resources, "uri"),
    "prompts": (listing.prompts, "name"),
}


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("--server", metavar="NAME", help="only this server's")
    command.add_argument("--json", action="store_true", help="as JSON, with schemas")


def run(arguments: argparse.Namespace) -> None:
    listed, key = _KINDS[arguments.command]
    found = listed(chosen_servers([arguments.server or "all"]))
    if arguments.json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    for entry in found:
        print(f"{entry['server']:18} {entry[key]:28} {entry['description'].splitlines()[0]}")
