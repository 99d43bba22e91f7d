"""What a request asks for, or everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from quantdeck.backtesting.engine import Terms
from quantdeck.backtesting.engine.walk_forward import Windows
from quantdeck.backtesting.messages import Unfit
from quantdeck.backtesting.messages.candles import of_candles
from quantdeck.backtesting.messages.jobs import MARKETS, Asked, of_job, runnable
from quantdeck.backtesting.messages.strategies import numbers_of
from quantdeck.backtesting.protocol import marketdata_pb2
from quantdeck.domain.calendars import CRYPTO, market_of
from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import RunnableSpec, StrategySpec
from quantdeck.domain.symbols import UnknownSymbolError, instrument

__all__ = ["MOST_STRATEGIES", "AskedBatch", "AskedValidation", "Known", "backtest", "batch", "names", "validation"]

MOST_STRATEGIES = 10_000
MOST_WINDOWS = 1_000

Known = Mapping[str, StrategySpec]
"""Specs of the service's own database, by name."""

_HOURS = {
    marketdata_pb2.CRYPTO: "crypto",
    marketdata_pb2.STOCKS: "stock",
    marketdata_pb2.FOREX: "fx",
    marketdata_pb2.COMMODITIES: "metal",
}


@dataclass(frozen=True, slots=True)
class AskedBatch:
    specs: tuple[RunnableSpec, ...]
    bars: Bars
    terms: Terms


@dataclass(frozen=True, slots=True)
class AskedValidation:
    one: Asked
    windows: Windows
    many: int


def backtest(request: Any, known: Known) -> Asked:
    """What a BacktestRequest asks for; Unfit with everything that is wrong with it."""
    problems: list[str] = []
    asked = _one(request, known, problems)
    if asked is None or problems:
        raise Unfit(problems)
    return asked


def batch(request: Any, known: Known) -> AskedBatch:
    """Likewise a BatchBacktestRequest."""
    problems: list[str] = []
    many = len(request.strategies)
    if not 0 < many <= MOST_STRATEGIES:
        problems.append(f"there are {many:,} strategies; a batch has 1 to {MOST_STRATEGIES:,}")
    specs = []
    for place, strategy in enumerate(request.strategies[:MOST_STRATEGIES], 1):
        wrong: list[str] = []
        specs.append(_strategy(strategy, strategy.strategy_name or request.strategy_name, known, wrong))
        problems += [f"strategy {place}: {said}" for said in wrong]
    bars = of_candles(request.candles, problems)
    if problems or bars is None:
        raise Unfit(problems)
    return AskedBatch(tuple(spec for spec in specs if spec), bars, _terms(request.candles))


def validation(request: Any, known: Known) -> AskedValidation:
    """Likewise a WalkForwardRequest."""
    problems: list[str] = []
    windows = _windows(request.config, problems)
    asked = _one(request, known, problems)
    if problems or asked is None or windows is None:
        raise Unfit(problems)
    many = max((len(asked.bars) - windows.train - windows.test) // windows.step + 1, 0)
    if many > MOST_WINDOWS:
        raise Unfit([f"its config makes {many:,} windows of these candles; at most {MOST_WINDOWS:,} are run"])
    return AskedValidation(asked, windows, many)


def names(request: Any) -> set[str]:
    """Of the strategies that a request names; none of more than a batch may have, which is refused anyway."""
    if len(getattr(request, "strategies", ())) > MOST_STRATEGIES:
        return set()
    named = [getattr(request, "strategy_name", ""), *(one.strategy_name for one in getattr(request, "strategies", ()))]
    if hasattr(request, "strategy"):
        named.append(request.strategy.strategy_name)
    return {name for name in named if name}


def _one(request: Any, known: Known, problems: list[str]) -> Asked | None:
    if request.HasField("job"):
        return of_job(request.job, problems)
    spec = _strategy(request.strategy, request.strategy.strategy_name, known, problems)
    bars = of_candles(request.candles, problems)
    return None if spec is None or bars is None else Asked(spec, bars, _terms(request.candles))


def _strategy(strategy: Any, name: str, known: Known, problems: list[str]) -> RunnableSpec | None:
    try:
        numbers, specific = numbers_of(strategy)
    except Unfit as error:
        problems += error.problems
        numbers, specific = {}, False
    if not name:
        problems.append("strategy_name is required: it names what is to be run")
        return None
    may = [found for found in (known.get(name), _builtin().get(name)) if found is not None]
    if not may:
        others = ", ".join(sorted({*_builtin(), *known}))
        problems.append(f"strategy {name[:80]!r} is not found here; there are {others}")
        return None
    # A message of one strategy's own is meant for tradestream's strategy of that name, where one of that name here
    # takes other parameters.
    spec = next((one for one in may if specific and numbers.keys() <= {p.name for p in one.parameters}), may[0])
    return runnable(spec, numbers, problems)


def _terms(candles: Sequence[Any]) -> Terms:
    """By the hours of what is traded: nothing else of them is in the contract."""
    first = candles[0]
    if market := MARKETS.get(_HOURS.get(first.asset_class, "")):
        return Terms(market)
    try:
        return Terms(market_of(instrument(first.currency_pair)))
    except UnknownSymbolError:
        return Terms(CRYPTO)


def _windows(config: Any, problems: list[str]) -> Windows | None:
    usual = Windows()
    given = {
        "train": config.train_window_bars or usual.train,
        "test": config.test_window_bars or usual.test,
        "step": config.step_bars or usual.step,
        "least": config.min_windows or usual.least,
    }
    try:
        return Windows(**given)
    except ValueError as error:
        problems.append(f"config: {error}")
        return None


@cache
def _builtin() -> Known:
    """Those that tradestream's service knows by name."""
    written = orjson.loads(files(__package__).joinpath("strategies.json").read_bytes())
    found = {one["name"]: read(**one).spec for one in written}
    return {name: spec for name, spec in found.items() if spec is not None}
