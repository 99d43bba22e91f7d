"""`quantdeck import`: what somebody has in files, into the stores. A kind is a file import_KIND.py and a line here."""

from __future__ import annotations

import argparse
from importlib import import_module

__all__ = ["add", "run"]

_KINDS = {
    "candles": "bars of any length from a minute to a day, from CSV or Parquet",
    "events": "the events of a backtest run, from lines of JSON",
    "desk": "accounts, positions and risk limits, from JSON",
}


def add(command: argparse.ArgumentParser) -> None:
    kinds = command.add_subparsers(metavar="KIND", dest="kind", required=True)
    for kind, words in _KINDS.items():
        module = import_module(f"quantdeck.commands.import_{kind}")
        one = kinds.add_parser(kind, help=words, description=words[0].upper() + words[1:] + ".")
        module.add(one)
        one.set_defaults(run_kind=module.run)


def run(arguments: argparse.Namespace) -> int | None:
    done: int | None = arguments.run_kind(arguments)
    return done
