"""What a sweep says: how far it is, and in the end a table for people, or JSON for programs."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from quantdeck.backtesting.engine.walk_forward import Verdict
from quantdeck.backtesting.sweeps import Numbers, Outcome, Task
from quantdeck.backtesting.sweeps.journal import Journal
from quantdeck.backtesting.sweeps.ranking import Ranked, figure
from quantdeck.collectors.bar_files.progress import Progress

__all__ = ["Report", "Said", "judged"]

_USUAL = ("sharpe", "return", "drawdown", "win_rate", "profit_factor", "trades", "score")
_SHARES = frozenset({"return", "annualized_return", "drawdown", "volatility", "win_rate", "exposure", "alpha"})
_PROBLEMS_TOLD, _PROBLEMS_LISTED = 5, 20


def judged(verdict: Verdict) -> dict[str, Any]:
    """What a walk-forward validation came to, as it is stored and told."""
    found = {one.name: getattr(verdict, one.name) for one in fields(verdict)}
    return {**found, "windows": len(verdict.windows)}


@dataclass(frozen=True, slots=True)
class Report:
    """`best` are those that are shown, of all `points`; `facts` say what they were run on."""

    task: Task
    facts: Mapping[str, Any]
    points: Sequence[Numbers]
    outcomes: Sequence[Outcome]
    by: Sequence[str]
    best: Sequence[Ranked]
    verdict: Verdict | None
    stored: Counter[str] | None
    ids: Sequence[str]

    @property
    def failed(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.metrics is None]

    def as_json(self) -> dict[str, Any]:
        return {
            **self.facts,
            "points": len(self.points),
            "failed": len(self.failed),
            "problems": [
                {"parameters": self.task.parameters(self.points[one.number]), "problem": one.problem}
                for one in self.failed[:_PROBLEMS_LISTED]
            ],
            "objectives": list(self.by),
            "best": [
                {
                    "rank": place,
                    "parameters": self.task.parameters(one.numbers),
                    **one.metrics.stored(),
                    "score": one.score,
                    **({"impl_id": self.ids[place - 1]} if place <= len(self.ids) else {}),
                }
                for place, one in enumerate(self.best, 1)
            ],
            "walk_forward": None if self.verdict is None else judged(self.verdict),
            "stored": None if self.stored is None else dict(self.stored),
        }

    def as_text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        facts = self.facts
        yield (
            f"{facts['spec']} on {facts['symbol']}, {facts['bars']:,} bars of {facts['timeframe']} from "
            f"{facts['start']} to {facts['end']} ({facts['source']})"
        )
        yield f"{len(self.points):,} points, {len(self.failed):,} of them failed; the best by {', then '.join(self.by)}"
        for one in self.failed[:_PROBLEMS_TOLD]:
            yield f"  failed: {_said(self.task.parameters(self.points[one.number]))}: {one.problem}"
        if len(self.failed) > _PROBLEMS_TOLD:
            yield f"  failed: {len(self.failed) - _PROBLEMS_TOLD:,} more"
        yield ""
        yield from self._table()
        if self.best and not self.best[0].metrics.trades:
            yield "None of them closed a trade."
        if self.verdict is not None:
            yield ""
            yield from _validated(self.verdict)
        if "run_id" in facts:
            yield f"its events are the run {facts['run_id']}"
        if self.stored is not None:
            yield ""
            yield "stored as implementations: " + ", ".join(f"{many:,} {what}" for what, many in self.stored.items())

    def _table(self) -> Iterator[str]:
        names = list(dict.fromkeys((*(name for name in self.by if name not in _USUAL), *_USUAL)))
        head = ["#", *(one.name for one in self.task.spec.parameters), *names]
        rows = [
            [str(place), *(f"{n:g}" for n in one.numbers), *(_cell(name, figure(name, one.metrics)) for name in names)]
            for place, one in enumerate(self.best, 1)
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def _validated(verdict: Verdict) -> Iterator[str]:
    yield f"walk-forward of the first: {verdict.status}" + (f": {verdict.reason}" if verdict.reason else "")
    if verdict.windows:
        yield (
            f"  {len(verdict.windows)} windows, Sharpe {verdict.in_sample_sharpe:.3f} in sample and "
            f"{verdict.out_of_sample_sharpe:.3f} after, deviating by {verdict.oos_sharpe_std_dev:.3f}"
        )


def _said(parameters: Mapping[str, int | float]) -> str:
    return ", ".join(f"{name}={number:g}" for name, number in parameters.items())


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name == "trades":
        return f"{value:,.0f}"
    return f"{value:.2%}" if name in _SHARES else f"{value:.3f}"


class Said:
    """What is said of the sweep while it runs, on stderr."""

    def __init__(self, arguments: argparse.Namespace, journal: Journal, points: int) -> None:
        self._points, self._done = points, len(journal.done)
        self._bar = None if arguments.quiet else Progress(sys.stderr, arguments.spec[-40:], unit="points")

    def __enter__(self) -> Self:
        if self._bar and self._done:
            print(f"{self._done:,} of {self._points:,} points were done before; going on", file=sys.stderr)
        return self

    def __call__(self, done: int) -> None:
        self._done = done
        if self._bar:
            self._bar(done / self._points, done)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if self._bar:
            self._bar.__exit__(kind, error, None)
        if kind is not None and self._done:
            said = f"broken off with {self._done:,} of {self._points:,} points done; the same command goes on"
            print(said, file=sys.stderr, flush=True)
