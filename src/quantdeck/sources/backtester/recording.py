"""A backtest as a run of an event log, so that backtest-events can say why each trade was made.

    made = await backtester.whole(job, as_of=now)
    run_id = await recorded(path, job, made, as_of=now)

Each order is the root of a chain: its execution, and the position that came of it. It names the indicators' figures at
the close that decided it (`Signals`). While there is a trade every close tells the position and the equity; while there
is none neither changes. An order that the newest close decided stays open: no bar has carried it out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from pathlib import Path
from threading import Event
from typing import Any

from quantdeck.backtesting.engine import Backtest, sound
from quantdeck.backtesting.engine.figures import computed
from quantdeck.core.clock import Now
from quantdeck.core.errors import QueryFailed
from quantdeck.domain.arrays import Floats
from quantdeck.domain.strategy_specs import Rule, RunnableSpec
from quantdeck.events import EventLog, EventLogError, Run
from quantdeck.sources.backtester import Job

__all__ = ["record", "recorded"]

log = logging.getLogger(__name__)

_SAID = {
    "above": "above", "below": "below", "crossed_up": "crossed above", "crossed_down": "crossed below",
    "rising": "rising for bars:", "falling": "falling for bars:",
    "gained": "gain of % reached:", "lost": "loss of % reached:", "fell_from_peak": "fall from the peak of % reached:",
}  # fmt: skip


class _UnwantedError(Exception):
    """Nobody waits for it any more."""


async def recorded(path: Path, job: Job, made: Backtest, *, as_of: Now) -> str:
    """What `record` does, on a thread. Whoever stops waiting ends it, and its run says that it failed."""
    unwanted = Event()
    try:
        return await asyncio.to_thread(record, path, job, made, as_of=as_of, unwanted=unwanted)
    except EventLogError as error:
        raise QueryFailed(
            "The backtest was run, and its events could not be written to the event log that the settings name, or "
            "--events of a sweep; this program's log says why",
            source="sqlite",
        ) from error
    finally:
        unwanted.set()


def record(path: Path, job: Job, made: Backtest, *, as_of: Now, unwanted: Event | None = None) -> str:
    """Write the backtest into the log at this path, which is made where there is none; the run's id.

    The run is known from `as_of` on. `made` is what the engine made of the bars of this job that had closed by then.
    """
    job = job.closed(as_of=as_of)
    runnable = job.spec.instantiate(job.parameters)
    about = {
        "symbol": job.symbol, "timeframe": job.timeframe.name, "parameters": dict(job.parameters),
        "cash": job.terms.cash, "fee": job.terms.costs.fee, "slippage": job.terms.costs.slippage,
    }  # fmt: skip
    story = _Story(job, runnable, made, unwanted or Event())
    with EventLog.open(path) as events:
        try:
            with events.run(runnable.name, about, start=story.begins, end=story.ends, created_at=as_of) as run:
                story.tell(run)
        except _UnwantedError:
            log.info("recording_ended", extra={"fields": {"run": run.id, "why": "nobody waits for it"}})
        return run.id


class _Story:
    """One backtest, told trade by trade."""

    def __init__(self, job: Job, spec: RunnableSpec, made: Backtest, unwanted: Event) -> None:
        self._spec, self._symbol, self._made, self._unwanted = spec, job.symbol, made, unwanted
        self._step, self._fee = timedelta(seconds=job.timeframe.seconds), job.terms.costs.fee
        self._cash = job.terms.cash
        self._bars = sound(job.bars)
        self._figures: Mapping[str, Floats] = computed(spec, self._bars) if len(self._bars) else {}
        self._realized = 0.0
        self.begins = self._open(0) if len(self._bars) else None
        self.ends = self._close(len(self._bars) - 1) if len(self._bars) else None

    def tell(self, run: Run) -> None:
        if self.begins is None or self.ends is None:
            return
        run.pnl(self.begins, realized=0.0, unrealized=0.0, Equity=self._cash)
        trades = self._made.trades
        columns = (trades.begins, trades.ends, trades.units, trades.entry_price, trades.exit_price, trades.profit)
        for number, trade in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            self._trade(run, *trade, closed=number < trades.closed)
        if self._made.decision is not None:
            self._pending(run)
        figures = self._made.metrics.stored()
        equity = float(self._made.equity[-1])
        gained = equity - self._cash - self._realized
        run.pnl(self.ends, realized=self._realized, unrealized=gained, Equity=equity, Metrics=figures)

    def _trade(
        self, run: Run, begin: int, end: int, units: float, paid: float, got: float, profit: float, *, closed: bool
    ) -> None:
        before = self._cash + self._realized
        order = self._order(run, begin - 1, "Buy", units, self._spec.entry)
        held = units * paid - before  # the fee, which is spent at once
        self._filled(run, begin, order, "Buy", units, paid, 0.0, (units, paid, held))
        for place in range(begin, end):
            if self._unwanted.is_set():
                raise _UnwantedError
            equity = float(self._made.equity[place])
            self._stands(run, self._close(place), (units, paid, equity - before), equity)
        if closed:
            order = self._order(run, end - 1, "Sell", units, self._spec.exit)
            self._realized += profit
            self._filled(run, end, order, "Sell", units, got, profit, (0.0, 0.0, 0.0))

    def _order(self, run: Run, place: int, side: Any, units: float | None, rules: Iterable[Rule]) -> str:
        """An order that the close of a bar decided, with the figures that it saw."""
        at = self._close(place)
        signals = [
            run.indicator(at, self._symbol, one.id, float(figure), {"Type": one.type, **one.numbers})
            for one in self._spec.computations
            if isfinite(figure := self._figures[one.id][place])
        ]
        price = float(self._bars.close[place])
        more: dict[str, Any] = {"OrderType": "Market", "Reason": "; ".join(map(_told, rules)), "Signals": signals}
        return run.order(at, self._symbol, side, units, price, **more)

    def _filled(
        self, run: Run, place: int, order: str, side: Any, units: float, price: float, profit: float, stands: Any
    ) -> None:
        at = self._open(place)
        trade = run.trade(
            at, self._symbol, side, units, price, order_id=order, parent=order,
            commission=self._fee * units * price, slippage=abs(price - float(self._bars.open[place])),
            RealizedPnL=profit,
        )  # fmt: skip
        equity = self._cash + self._realized + stands[2]
        self._stands(run, at, stands, equity, parent=trade)

    def _stands(
        self, run: Run, at: datetime, stands: tuple[float, float, float], equity: float, parent: str | None = None
    ) -> None:
        """The position and the profit, after a fill or at a close."""
        units, paid, gained = stands
        run.position(at, self._symbol, units, paid, unrealized_pnl=gained, realized_pnl=self._realized, parent=parent)
        run.pnl(at, realized=self._realized, unrealized=gained, parent=parent, Equity=equity)

    def _pending(self, run: Run) -> None:
        newest = len(self._bars) - 1
        if self._made.decision == "enter":  # with all the money, at a price that nobody knows yet
            self._order(run, newest, "Buy", None, self._spec.entry)
        else:
            self._order(run, newest, "Sell", float(self._made.trades.units[-1]), self._spec.exit)

    def _open(self, place: int) -> datetime:
        return datetime.fromtimestamp(int(self._bars.time[place]), UTC)

    def _close(self, place: int) -> datetime:
        return self._open(place) + self._step


def _told(rule: Rule) -> str:
    """A rule in words, with its number."""
    about = f"{rule.indicator} " if rule.indicator else ""
    against = rule.against if isinstance(rule.against, str) else f"{rule.against:g}"
    return f"{about}{_SAID[rule.operation]} {against}"
