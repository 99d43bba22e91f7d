"""Commands of several kinds, such as `import candles`: a kind is a file of its own."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module

__all__ = ["add_kinds", "run_kind"]


def add_kinds(command: argparse.ArgumentParser, verb: str, kinds: Mapping[str, tuple[str, str]]) -> None:
    """The kinds of a command, each with what it is for and an example that a test runs.

    `commands/VERB_KIND.py` has its add() and run().
    """
    found = command.add_subparsers(metavar="KIND", dest="kind", required=True)
    for kind, (words, example) in kinds.items():
        module = import_module(f"quantdeck.commands.{verb}_{kind}")
        one = found.add_parser(
            kind,
            help=words,
            description=words[0].upper() + words[1:] + ".",
            epilog=f"example:\n  quantdeck {verb} {kind} {example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add(one)
        one.set_defaults(run_kind=module.run)


def run_kind(arguments: argparse.Namespace) -> int | None:
    """Run the kind that was chosen."""
    done: int | None = arguments.run_kind(arguments)
    return done
