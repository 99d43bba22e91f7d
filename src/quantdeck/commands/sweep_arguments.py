"""What `quantdeck sweep` can be told."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from quantdeck.backtesting.engine.walk_forward import Windows
from quantdeck.backtesting.sweeps.points import MOST_POINTS
from quantdeck.backtesting.sweeps.ranking import OBJECTIVES
from quantdeck.commands import up_to
from quantdeck.domain.timeframes import TIMEFRAMES

__all__ = ["DAYS", "add"]

DAYS = 730
"""Of hourly bars these are enough for a walk-forward validation."""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("spec", metavar="SPEC", help="the name of a stored spec, or a JSON file with one")
    command.add_argument("--symbol", required=True, help="whose bars")
    command.add_argument("--timeframe", choices=tuple(TIMEFRAMES), default="1h", metavar="LENGTH", help="(default 1h)")
    command.add_argument("--start", type=_instant, metavar="INSTANT", help="first open: 2026-01-15, or with a time")
    command.add_argument("--end", type=_instant, metavar="INSTANT", help="opens before this (default: the present)")
    command.add_argument("--days", type=up_to(36_500), metavar="N", help=f"before the end (default {DAYS})")
    command.add_argument(
        "--grid", nargs="+", action="extend", default=[], metavar="NAME=VALUES",
        help="a parameter's numbers: 10,20,40 or from:to:step or both; what is not named keeps its default",
    )  # fmt: skip
    command.add_argument(
        "--random", type=up_to(MOST_POINTS), metavar="N", help="draw N points: of the grid, or each parameter's range"
    )
    command.add_argument("--seed", type=up_to(2**63 - 1), default=7, metavar="N", help="of what is drawn (default 7)")
    command.add_argument(
        "--objective", default="sharpe", metavar="A,B",
        help=f"what is best, then what decides between equals (default sharpe): {', '.join(OBJECTIVES)}",
    )  # fmt: skip
    command.add_argument(
        "--min-trades", type=up_to(10**9), default=1, metavar="N", help="who closed fewer comes last (default 1)"
    )
    command.add_argument(
        "--top", type=up_to(MOST_POINTS), default=10, metavar="N", help="how many are shown (default 10)"
    )
    command.add_argument(
        "--store", type=up_to(MOST_POINTS), default=100, metavar="N",
        help="how many of the best become implementations (default 100; 0 for none)",
    )  # fmt: skip
    command.add_argument(
        "--walk-forward", action=argparse.BooleanOptionalAction, default=True, help="validate the best (default)"
    )
    command.add_argument(
        "--windows", type=_windows, default=Windows(), metavar="TRAIN,TEST,STEP,LEAST",
        help="of that, in bars (default 6480,2160,2160,4)",
    )  # fmt: skip
    command.add_argument("--fee", type=float, default=0.001, help="of each fill, a fraction (default 0.001)")
    command.add_argument("--slippage", type=float, default=0.0, help="likewise (default 0)")
    command.add_argument("--risk-free", type=float, default=0.0, help="what money earns in a year (default 0)")
    command.add_argument("--events", type=Path, metavar="PATH", help="write the best into this event log, as a run")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--processes", type=up_to(1024), metavar="N", help="on this machine (default: its processors)")
    where.add_argument("--ray", metavar="ADDRESS", help="of a Ray cluster: auto, host:6379, ray://host:10001")
    command.add_argument("--fresh", action="store_true", help="begin anew where the same sweep was broken off")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--quiet", action="store_true", help="say nothing of how far it is")


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is not None and len(text) == len("2026-01-15"):
        at = at.replace(tzinfo=UTC)
    if at is None or at.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no day such as 2026-01-15, and no instant with an offset such as 2026-01-15T09:30:00Z"
        )
    return at


def _windows(text: str) -> Windows:
    try:
        train, test, step, least = (int(part) for part in text.split(",", 3) if len(part) < 12)
        return Windows(train, test, step, least)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not four whole numbers above 0, such as 6480,2160,2160,4"
        ) from None
