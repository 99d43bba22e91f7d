"""`quantdeck sweep`: which numbers of a strategy spec do best on a symbol's bars."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from quantdeck import __version__
from quantdeck.app import App, open_app
from quantdeck.backtesting.engine import Costs, Terms
from quantdeck.backtesting.engine import run as backtest
from quantdeck.backtesting.engine.walk_forward import Verdict, walk_forward
from quantdeck.backtesting.sweeps import Numbers, SweepFailedError, Task
from quantdeck.backtesting.sweeps.cluster import Cluster, is_installed
from quantdeck.backtesting.sweeps.journal import Journal, JournalInUseError, digest
from quantdeck.backtesting.sweeps.points import GridProblem, drawn, grid, read_values
from quantdeck.backtesting.sweeps.pool import Pool
from quantdeck.backtesting.sweeps.ranking import Ranked, UnknownObjectiveError, objectives, ranked
from quantdeck.backtesting.sweeps.sweeping import Runner, sweep
from quantdeck.commands import UsageError, logged
from quantdeck.commands.sweep_arguments import DAYS, add
from quantdeck.commands.sweep_report import Report, Said, judged
from quantdeck.commands.sweep_spec import SweptSpec, found_spec
from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import SourceError
from quantdeck.core.wire import encode
from quantdeck.domain.calendars import market_of
from quantdeck.domain.candles import Bars
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.domain.symbols import UnknownSymbolError, instrument
from quantdeck.domain.timeframes import TIMEFRAMES, FinerThanStored
from quantdeck.settings import Settings
from quantdeck.sources.backtester import Job
from quantdeck.sources.candles import Candles
from quantdeck.sources.sql.implementations import Found, Implementations, made_id

__all__ = ["add", "run"]

_TERMINATED = 128 + signal.SIGTERM


def run(arguments: argparse.Namespace) -> int:
    settings = Settings.read()
    wish = _wish(arguments)
    return logged(settings, _until_told(settings, wish, arguments), level="error")


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was asked for, as far as it can be read without looking anywhere."""

    symbol: str
    terms: Terms
    by: list[str]
    runner: Runner


def _wish(arguments: argparse.Namespace) -> _Wish:
    try:
        symbol = instrument(arguments.symbol)
        costs = Costs(arguments.fee, arguments.slippage)
        terms = Terms(market_of(symbol), costs=costs, risk_free=arguments.risk_free)
        by = objectives(arguments.objective)
    except UnknownSymbolError as error:
        raise UsageError(f"{arguments.symbol[:40]!r} {error}") from error
    except (ValueError, UnknownObjectiveError) as error:
        raise UsageError(str(error)) from error
    if not arguments.grid and arguments.random is None:
        raise UsageError("say which points: --grid NAME=VALUES …, or --random N")
    if arguments.start and arguments.days is not None:
        raise UsageError("say --start or --days, not both")
    if arguments.processes == 0:
        raise UsageError("--processes is 1 or more")
    return _Wish(symbol, terms, by, _runner(arguments))


def _runner(arguments: argparse.Namespace) -> Runner:
    if arguments.ray is None:
        return Pool(arguments.processes or _processors())
    if not is_installed():
        raise UsageError("--ray needs Ray, which is not installed: pip install 'quantdeck[ray]'")
    return Cluster(arguments.ray)


def _processors() -> int:
    """Those that this process may use; where the system does not say which, all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def _until_told(settings: Settings, wish: _Wish, arguments: argparse.Namespace) -> int:
    """SIGTERM ends it as Ctrl-C does: nothing of it goes on running, and what is done is remembered."""
    task = asyncio.current_task()
    assert task is not None
    ended: list[int] = []

    def end() -> None:
        ended.append(_TERMINATED)
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    try:
        return await _swept(settings, wish, arguments)
    except asyncio.CancelledError:
        if not ended:
            raise
        return ended[0]
    except (SourceError, SweepFailedError, FinerThanStored, GridProblem, JournalInUseError) as error:
        raise UsageError(getattr(error, "message", None) or str(error)) from error


async def _swept(settings: Settings, wish: _Wish, arguments: argparse.Namespace) -> int:
    async with open_app(settings, ()) as app:
        as_of = app.runtime.clock.now()
        spec = await _spec(app, arguments, as_of)
        points = _points(spec.spec, arguments)
        _check_log(arguments.events)
        asked = digest(
            [
                __version__, spec.spec.name, spec.spec.stored(), wish.symbol, arguments.timeframe,
                *(None if at is None else iso(at) for at in (arguments.start, arguments.end)), arguments.days,
                iso(as_of) if as_of.fixed else "wall", arguments.fee, arguments.slippage, arguments.risk_free, points,
            ]
        )  # fmt: skip
        with Journal.open(settings.home_path / "sweeps", asked) as journal:
            bars = await _bars(app, wish, arguments, journal, as_of)
            task = Task(spec.spec, bars, wish.terms)
            with Said(arguments, journal, len(points)) as said:
                outcomes = await sweep(task, points, journal, wish.runner, said)
            by_rank = ranked(points, outcomes, wish.by, arguments.min_trades)
            verdict = await _verdict(task, by_rank, arguments)
            facts = _facts(app, wish, arguments, task)
            stored, ids = await _stored(app, spec, task, by_rank[: arguments.store], verdict, facts, as_of)
            best = by_rank[: arguments.top]
            facts |= await _events(task, wish, by_rank, arguments, as_of)
            report = Report(task, facts, points, outcomes, wish.by, best, verdict, stored, ids)
            print(encode(report.as_json()).decode() if arguments.json else report.as_text(), flush=True)
            journal.remove()
    return int(not by_rank)


async def _spec(app: App, arguments: argparse.Namespace, as_of: Now) -> SweptSpec:
    if arguments.spec.endswith(".json") and arguments.store:
        await app.databases.make_desk()
    return await found_spec(
        arguments.spec, lambda: app.runtime.source(Implementations), as_of=as_of, to_store=arguments.store > 0
    )


def _points(spec: StrategySpec, arguments: argparse.Namespace) -> list[Numbers]:
    values = read_values(spec, arguments.grid)
    return grid(spec, values) if arguments.random is None else drawn(spec, values, arguments.random, arguments.seed)


async def _bars(app: App, wish: _Wish, arguments: argparse.Namespace, journal: Journal, as_of: Now) -> Bars:
    """The closed bars: of what is gone on with those that it began with, where they are still the same."""
    if journal.head is not None and not arguments.fresh:
        start, end = (datetime.fromisoformat(journal.head[name]) for name in ("start", "end"))
        bars = await _read(app, wish, arguments, start, end, as_of)
        if digest(*bars.columns()) == journal.head["bars"]:
            return bars
        print("the bars of the sweep that was broken off have changed, so it begins anew", file=sys.stderr)
    end = arguments.end or as_of
    if end > as_of:
        raise UsageError(f"--end is after the world's clock, which stands at {iso(as_of)}: nobody knows those bars yet")
    start = arguments.start or end - timedelta(days=DAYS if arguments.days is None else arguments.days)
    if start >= end:
        raise UsageError(f"the bars begin at {iso(start)}, which is not before their end at {iso(end)}")
    bars = await _read(app, wish, arguments, start, end, as_of)
    journal.begin({"start": start.isoformat(), "end": end.isoformat(), "bars": digest(*bars.columns())})
    return bars


async def _read(
    app: App, wish: _Wish, arguments: argparse.Namespace, start: datetime, end: datetime, as_of: Now
) -> Bars:
    timeframe = TIMEFRAMES[arguments.timeframe]
    bars: Bars = await app.runtime.source(Candles).between(wish.symbol, timeframe, start, end, as_of=as_of)
    if not len(bars):
        raise UsageError(f"there are no closed bars of {wish.symbol} from {iso(start)} to {iso(end)}")
    return bars


async def _verdict(task: Task, best: Sequence[Ranked], arguments: argparse.Namespace) -> Verdict | None:
    """Whether the best holds up; on a thread, which ends soon after nobody waits for it any more."""
    if not (arguments.walk_forward and best):
        return None
    left = threading.Event()

    def tell(share: float) -> None:
        if left.is_set():
            raise InterruptedError

    runnable = task.spec.instantiate(task.parameters(best[0].numbers))
    try:
        return await asyncio.to_thread(walk_forward, runnable, task.bars, task.terms, arguments.windows, None, tell)
    finally:
        left.set()


def _check_log(path: Path | None) -> None:
    """Before hours of work are done of which it could not tell."""
    if path is None:
        return
    from quantdeck.events import EventLog, EventLogError

    try:
        with EventLog.open(path):
            pass
    except EventLogError as error:
        raise UsageError(f"--events: {error}") from error


async def _events(
    task: Task, wish: _Wish, best: Sequence[Ranked], arguments: argparse.Namespace, as_of: Now
) -> dict[str, str]:
    """Where the best is told trade by trade, if that was asked for."""
    if arguments.events is None or not best:
        return {}
    from quantdeck.sources.backtester.recording import recorded

    parameters = task.parameters(best[0].numbers)
    made = await asyncio.to_thread(backtest, task.spec.instantiate(parameters), task.bars, task.terms)
    job = Job(task.spec, parameters, wish.symbol, TIMEFRAMES[arguments.timeframe], task.bars, task.terms)
    return {"run_id": await recorded(arguments.events, job, made, as_of=as_of)}


def _facts(app: App, wish: _Wish, arguments: argparse.Namespace, task: Task) -> dict[str, Any]:
    """What was swept. `start` is the first bar's open and `end` the last one's close."""
    first_s, last_s = (int(task.bars.time[place]) for place in (0, -1))
    ends_s = last_s + TIMEFRAMES[arguments.timeframe].seconds
    return {
        "spec": task.spec.name,
        "symbol": wish.symbol,
        "timeframe": arguments.timeframe,
        "start": iso(datetime.fromtimestamp(first_s, UTC)),
        "end": iso(datetime.fromtimestamp(ends_s, UTC)),
        "bars": len(task.bars),
        "fee": arguments.fee,
        "slippage": arguments.slippage,
        "risk_free": arguments.risk_free,
        "source": app.runtime.source(Candles).source,
    }


async def _stored(
    app: App,
    spec: SweptSpec,
    task: Task,
    best: Sequence[Ranked],
    verdict: Verdict | None,
    facts: Mapping[str, Any],
    as_of: Now,
) -> tuple[Counter[str] | None, list[str]]:
    """How many became implementations, and their ids. The first of them has its validation with its figures."""
    if not best:
        return None, []
    desk = app.runtime.source(Implementations)
    spec_id = spec.spec_id or await desk.keep_spec(spec.spec, as_of=as_of)
    if spec_id is None:
        raise UsageError(f"another spec was stored as {spec.spec.name} meanwhile, so nothing is stored; run it again")
    about = {name: value for name, value in facts.items() if name not in {"spec", "symbol"}}
    found = [Found(task.parameters(one.numbers), {**one.metrics.stored(), "score": one.score, **about}) for one in best]
    if verdict is not None:
        found[0] = Found(found[0].parameters, {**found[0].metrics, "walk_forward": judged(verdict)})
    symbol, timeframe = facts["symbol"], facts["timeframe"]
    counts = await desk.store(spec_id, symbol, timeframe, found, as_of=as_of)
    return counts, [made_id(spec_id, symbol, timeframe, one.parameters) for one in found]
