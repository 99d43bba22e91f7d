"""Backtests by a service beside those of this process, over the same 65,000 candles."""

import tempfile
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import orjson

from benchmarks.figures import Figure
from benchmarks.progress import say
from benchmarks.report import Report, Table
from quantdeck import demo
from quantdeck.connections.databases import Databases
from quantdeck.connections.grpc import Channels, place
from quantdeck.core.clock import Clock
from quantdeck.domain.candles import Bars, joined
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import StrategySpec
from quantdeck.domain.timeframes import MINUTE
from quantdeck.settings import Settings
from quantdeck.sources.backtester import Backtester, Job
from quantdeck.sources.backtester.grpc import OverGrpc
from quantdeck.sources.backtester.inprocess import InProcess
from quantdeck.sources.candles.embedded import connect
from tests.support.backtester import begun

CANDLES, SYMBOL = 65_000, "BTC/USD"
CLOCK = Clock.parse("2026-06-01T12:00:00Z").now()
ABOUT = (
    f"{CANDLES:,} one-minute bars of the embedded store, and every strategy of the demo world. 'whole' is what a "
    "caller waits for: the bars are read, the backtest is run, its figures are there; 'bare' is the backtest alone, of "
    "bars that are there already. The service is a process of its own on the same machine, and all bars travel with "
    "each question; its figures are equal to the last bit, which is looked at before anything is measured. Medians."
)


async def measure(quick: bool) -> Report:
    rounds = 5 if quick else 25
    with tempfile.TemporaryDirectory() as home, begun(Path(home)) as service:
        settings = Settings(home=Path(home))
        databases = Databases(settings)
        store = connect("", settings, databases)
        last = int(CLOCK.timestamp()) // DAY_S
        market, days = DemoMarket(7, shape_of), range(last - CANDLES // 1440 - 2, last + 1)
        await store.write(SYMBOL, MINUTE, joined([market.day(INSTRUMENTS[SYMBOL], day) for day in days]))
        channels = Channels(place(f"grpc://{service.target}", settings.grpc), settings.grpc)
        by = {"in process": InProcess(2), "gRPC": OverGrpc(channels, settings.grpc)}
        bars = await _read(store)
        took: dict[str, dict[str, dict[str, float]]] = {}
        for spec in _specs():
            say(spec.name)
            took[spec.name] = await _measured(spec, store, bars, by, rounds)
        await by["gRPC"].close()
        await databases.close()
    return _told(took)


async def _read(store: Any) -> Bars:
    page, _ = await store.page(SYMBOL, MINUTE, CANDLES, as_of=CLOCK)
    bars: Bars = page
    return bars


async def _measured(
    spec: StrategySpec, store: Any, bars: Bars, by: dict[str, Backtester], rounds: int
) -> dict[str, dict[str, float]]:
    def job(over: Bars) -> Job:
        return Job(spec, {}, SYMBOL, MINUTE, over)

    async def bare(backtester: Backtester) -> Any:
        return await backtester.run(job(bars), as_of=CLOCK)

    async def whole(backtester: Backtester) -> Any:
        return await backtester.run(job(await _read(store)), as_of=CLOCK)

    found = [await how(one) for how in (bare, whole) for one in by.values()]
    if any(one != found[0] for one in found):
        raise SystemExit(f"{spec.name} comes to something else by gRPC: {found}")
    each: dict[str, dict[str, list[float]]] = {how: {name: [] for name in by} for how in ("bare", "whole")}
    ways: dict[str, Callable[[Backtester], Awaitable[Any]]] = {"bare": bare, "whole": whole}
    for _ in range(rounds):  # in turn, so that what else the machine does is shared
        for how, way in ways.items():
            for name, one in by.items():
                begin = perf_counter()
                await way(one)
                each[how][name].append(perf_counter() - begin)
    return {how: {name: median(one) for name, one in names.items()} for how, names in each.items()}


def _specs() -> list[StrategySpec]:
    written = orjson.loads(files(demo).joinpath("specs.json").read_bytes())
    parts = ("name", "indicators", "entry_conditions", "exit_conditions", "parameters")
    found = [read(**{part: one[part] for part in parts}).spec for one in written]
    return [spec for spec in found if spec is not None]


def _told(took: dict[str, dict[str, dict[str, float]]]) -> Report:
    rows: list[tuple[str, ...]] = []
    multiples: dict[str, list[float]] = {"whole": [], "bare": []}
    together: dict[str, float] = {}
    for how, found in multiples.items():
        here, there = (sum(one[how][name] for one in took.values()) for name in ("in process", "gRPC"))
        together[how] = there / here
        each = {name: one[how] for name, one in took.items()} | {"all": {"in process": here, "gRPC": there}}
        for name, one in each.items():
            multiple = one["gRPC"] / one["in process"]
            rows.append((name, how, f"{one['in process'] * 1e3:.1f}", f"{one['gRPC'] * 1e3:.1f}", f"{multiple:.2f}"))
            if name != "all":
                found.append(multiple)
    said = "65,000 candles by gRPC, as a multiple of in process"
    figures = [
        Figure(f"all strategies over {said}", 1.5, together["whole"], "x"),
        Figure(f"the middle one of the strategies over {said}", 1.5, median(multiples["whole"]), "x"),
    ]
    table = Table("a backtest of 65,000 candles", ("strategy", "what", "in process, ms", "gRPC, ms", "multiple"), rows)
    return Report("backtester", ABOUT, [table], figures, {"wall_s": took, "multiples": multiples})
