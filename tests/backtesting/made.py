"""Specs and series for tests of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from quantdeck.backtesting.engine.figures import computed
from quantdeck.domain.arrays import listed
from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import RunnableSpec
from tests.backtesting.plain_figures import Bar
from tests.support.specs import CONDITION_TYPES, INDICATOR_TYPES

HOUR = 3600

_WHOLE = {"period", "shortPeriod", "longPeriod", "fastPeriod", "slowPeriod", "atrPeriod", "kPeriod", "emaPeriod"}
_DOUBLES = {"multiplier": 1.5, "value": 100.0, "sc": 0.5, "alpha": 0.5}


def runnable(**said: Any) -> RunnableSpec:
    """A spec with its defaults, of which only the parts that matter are said."""
    whole = {
        "name": "A_SPEC",
        "indicators": [{"id": "one", "type": "CLOSE"}],
        "entry_conditions": [{"type": "OVER_CONSTANT", "indicator": "close", "params": {"threshold": 0}}],
        "exit_conditions": [{"type": "UNDER_CONSTANT", "indicator": "close", "params": {"threshold": 0}}],
        "parameters": [],
        **said,
    }
    reading = read(**whole)
    assert reading.spec is not None, reading.problems
    return reading.spec.instantiate()


def of_closes(closes: Sequence[float], opens: Sequence[float] | None = None) -> Bars:
    """Hourly bars. Each opens where the one before closed, if nothing else is said."""
    opens = opens or [closes[0], *closes[:-1]] if closes else []
    pairs = list(zip(opens, closes, strict=True))
    time = range(1_700_006_400, 1_700_006_400 + HOUR * len(closes), HOUR)
    return Bars.of(list(time), opens, [max(p) for p in pairs], [min(p) for p in pairs], closes, [1.0] * len(closes))


def bars_of(rows: Sequence[Bar], step_s: int = HOUR) -> Bars:
    time = range(1_700_006_400, 1_700_006_400 + step_s * len(rows), step_s)
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return Bars.of(list(time), *columns)


@st.composite
def series(draw: st.DrawFn, most: int = 120) -> list[Bar]:
    """Bars that stand still, jump and repeat themselves; some without reach, some without volume."""
    many = draw(st.sampled_from([0, 1, 2, most // 4, most // 2, most, most, most]))
    random = draw(st.randoms(use_true_random=True))
    calm = draw(st.sampled_from([0.0, 0.2, 0.9, 1.0]))
    found: list[Bar] = []
    close = 100.0
    for _ in range(many):
        moves = [0.0 if random.random() < calm else random.choice([0.5, -0.5, 1.0, 3.25, -4.0, 0.013]) for _ in "12"]
        opens = max(close + moves[0], 1.0)
        close = max(opens + moves[1], 1.0)
        reach = 0.0 if random.random() < calm else random.choice([0.0, 0.0, 0.25, 1.0])
        low = max(min(opens, close) - reach, 0.5)
        found.append((opens, max(opens, close) + reach, low, close, random.choice([0.0, 1.0, 2.0, 3.5, 1e6])))
    return found


def params_of(kind: str, draw: st.DrawFn, longest: int = 12) -> dict[str, Any]:
    """Numbers for one type of indicator."""
    found: dict[str, Any] = {}
    for name in (one.split("=")[0] for one in INDICATOR_TYPES[kind].split()):
        found[name] = draw(st.integers(1, longest)) if name in _WHOLE | {"n", "fc", "sumPeriod"} else _DOUBLES[name]
    if kind == "MACD":
        found["longPeriod"] += found["shortPeriod"]
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[RunnableSpec, list[Bar]]:
    """Random bars, and a spec whose numbers are such that its conditions hold now and then in them."""
    rows = draw(series())
    random = draw(st.randoms(use_true_random=True))
    ids = ["close"]
    indicators: list[dict[str, Any]] = []
    for number in range(random.choice([1, 2, 3])):
        kind = random.choice(sorted(INDICATOR_TYPES))
        source = random.choice([*ids, *ids, "close", "open", "high", "low", "volume"])
        indicators.append({"id": f"i{number}", "type": kind, "input": source, "params": params_of(kind, draw)})
        ids.append(f"i{number}")
    figures = computed(runnable(indicators=indicators), bars_of(rows))
    there = {name: [one for one in listed(figure) if one is not None] for name, figure in figures.items()}

    def condition(types: list[str]) -> dict[str, Any]:
        kind, about = random.choice(types), random.choice(ids)
        if "STOP" in kind:
            return {"type": kind, "params": {"percentage": random.choice([0.5, 1.0, 3.0, 7.0, 120.0])}}
        params: dict[str, Any] = {}
        for name in CONDITION_TYPES[kind].split():
            chosen = random.choice(name.split("|"))
            if chosen in {"crosses", "other"}:
                params[chosen] = random.choice(ids)
            elif chosen == "direction":
                params[chosen] = random.choice(["UP", "DOWN"])
            else:
                params[chosen] = random.choice([1, 2, 3]) if chosen == "barCount" else _near(random, there[about])
        return {"type": kind, "indicator": about, "params": params}

    watching = [name for name in CONDITION_TYPES if "STOP" not in name]
    stops = [name for name in CONDITION_TYPES if "STOP" in name]
    leaving = random.choice([watching, stops, [*watching, *stops * 3]])
    spec = runnable(
        indicators=indicators,
        entry_conditions=[condition(watching) for _ in range(random.choice([1, 1, 1, 2]))],
        exit_conditions=[condition(leaving) for _ in range(random.choice([1, 1, 1, 2]))],
    )
    return spec, rows


def _near(random: Random, figures: list[float]) -> float:
    """One of these, so that they are above, below and equal to it."""
    return min(max(random.choice(figures or [0.0]), -1e14), 1e14)
