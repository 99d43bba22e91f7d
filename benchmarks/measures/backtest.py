"""The backtest engine beside one strategy written by hand: bar by bar, and with numpy."""

from collections.abc import Callable
from dataclasses import asdict
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks import questions
from benchmarks.backtest_calls import BACKTEST, measured
from benchmarks.figures import Figure
from benchmarks.plain_strategy import SPEC, by_bar, by_column
from benchmarks.progress import say
from benchmarks.report import Report, Table
from quantdeck.backtesting.engine import run
from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read

MILLION = 1_000_000
_BEGINS_S = 1_700_000_040


async def measure(quick: bool) -> Report:
    bars = made(MILLION)
    spec = read(**SPEC).spec
    assert spec is not None
    runnable = spec.instantiate()
    ways: dict[str, Callable[[], Any]] = {
        "bar by bar": lambda: by_bar(bars),
        "numpy, by hand": lambda: by_column(bars),
        "engine": lambda: asdict(run(runnable, bars).metrics),
    }
    told = {name: way() for name, way in ways.items()}
    _agreed(told)
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(3 if quick else 9):  # in turn, so that what else the machine does is shared
        say(f"round {number + 1}")
        for name, way in ways.items():
            took[name].append(_timed(way))
    wall, work = ({name: median(one[which] for one in each) for name, each in took.items()} for which in (0, 1))
    rows = [
        (name, f"{wall[name] * 1e3:.0f}", f"{work[name] * 1e3:.0f}", f"{wall[name] / wall['engine']:.2f}")
        for name in ways
    ]
    trades = told["engine"]["trades"]
    about = (
        f"{MILLION:,} one-minute bars of a random walk, a strategy of an SMA and an RSI, {trades:,} trades with fees; "
        "indicators, trades, equity at every close and all figures are computed in each run, from bare arrays. The "
        "three agree on every figure before anything is measured. Medians; processor time is what the machine's other "
        "work changes less."
    )
    figures = [
        Figure(
            "a million bars, as a multiple of the bar-by-bar loop's", 0.25, wall["engine"] / wall["bar by bar"], "x"
        ),
        Figure("a million bars, as a multiple of numpy by hand", 5, wall["engine"] / wall["numpy, by hand"], "x"),
    ]
    table = Table("a million bars", ("how", "ms", "CPU ms", "multiple of the engine's"), rows)
    calls = await measured(quick)
    figures.append(_of_calls(calls))
    data = {"wall_s": wall, "cpu_s": work, "told": told["engine"], "calls": calls}
    return Report("backtest", about, [table, _table(calls)], figures, data)


def _of_calls(calls: dict[str, dict[str, float]]) -> Figure:
    multiple = calls[BACKTEST]["p50_us"] / calls[questions.NOTHING]["p50_us"]
    return Figure(f"{BACKTEST} through a client, as a multiple of a tool that does nothing", 10, multiple, "x")


def _table(calls: dict[str, dict[str, float]]) -> Table:
    rows = [(name, f"{taken['p50_us']:.0f}") for name, taken in calls.items()]
    return Table("over stdio, through the whole pipeline", ("question", "p50 us"), rows)


def made(many: int) -> Bars:
    random = np.random.default_rng(11)
    close = 100.0 * np.exp(random.normal(0.0, 1e-3, many).cumsum())
    opens = np.concatenate(([100.0], close[:-1]))
    reach = np.abs(random.normal(0.0, 5e-4, many))
    high, low = np.maximum(opens, close) * (1.0 + reach), np.minimum(opens, close) * (1.0 - reach)
    return Bars.of(np.arange(many) * 60 + _BEGINS_S, opens, high, low, close, random.exponential(10.0, many))


def _agreed(told: dict[str, dict[str, Any]]) -> None:
    for name, figures in told.items():
        for key, value in figures.items():
            mine = told["engine"][key]
            if name != "engine" and not np.isclose(mine, value, rtol=1e-6):
                raise SystemExit(f"{key} is {mine} by the engine and {value} {name}: one of them is wrong")


def _timed(way: Callable[[], Any]) -> tuple[float, float]:
    begun, worked = perf_counter(), process_time()
    way()
    return perf_counter() - begun, process_time() - worked
