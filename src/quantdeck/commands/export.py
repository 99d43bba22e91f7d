"""`quantdeck export`: what is in the stores, into files. A kind is a file export_KIND.py and a line here."""

from __future__ import annotations

import argparse
from importlib import import_module

__all__ = ["add", "run"]

_KINDS = {
    "candles": "bars at any length, into CSV or Parquet",
    "events": "the events of a backtest run, as the lines of JSON that `import events` takes",
    "desk": "accounts, positions and risk limits, as the JSON that `import desk` takes",
}


def add(command: argparse.ArgumentParser) -> None:
    kinds = command.add_subparsers(metavar="KIND", dest="kind", required=True)
    for kind, words in _KINDS.items():
        module = import_module(f"quantdeck.commands.export_{kind}")
        one = kinds.add_parser(kind, help=words, description=words[0].upper() + words[1:] + ".")
        module.add(one)
        one.set_defaults(run_kind=module.run)


def run(arguments: argparse.Namespace) -> int | None:
    done: int | None = arguments.run_kind(arguments)
    return done
