"""`quantdeck export`: what is in the stores, into files. A kind is a file export_KIND.py and a line here."""

from __future__ import annotations

import argparse

from quantdeck.commands.kinds import add_kinds, run_kind

__all__ = ["add", "run"]

_KINDS = {
    "candles": (
        "bars at any length, into CSV or Parquet",
        "BTC/USD --timeframe 1d --start 2026-01-01T00:00:00Z",
    ),
    "events": ("the events of a backtest run, as the lines of JSON that `import events` takes", ""),
    "desk": ("accounts, positions and risk limits, as the JSON that `import desk` takes", ""),
}


def add(command: argparse.ArgumentParser) -> None:
    add_kinds(command, "export", _KINDS)


run = run_kind
