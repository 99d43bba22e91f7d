"""`quantdeck import`: what somebody has in files, into the stores. A kind is a file import_KIND.py and a line here."""

from __future__ import annotations

import argparse

from quantdeck.commands.kinds import add_kinds, run_kind

__all__ = ["add", "run"]

_KINDS = {
    "candles": ("bars of any length from a minute to a day, from CSV or Parquet", "SOLUSD-1m.csv --into-demo"),
    "events": ("the events of a backtest run, from lines of JSON", "--example"),
    "desk": ("accounts, positions and risk limits, from JSON", "--example"),
}


def add(command: argparse.ArgumentParser) -> None:
    add_kinds(command, "import", _KINDS)


run = run_kind
