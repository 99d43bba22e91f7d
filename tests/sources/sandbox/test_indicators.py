"""The figures that code computes are those of the tools, to 1e-9."""

from __future__ import annotations

import math
import random
from typing import Any

import orjson
import pytest

from quantdeck.domain import indicators as core
from quantdeck.domain.arrays import listed

_SEEDED = random.Random(7)


def walk(length: int, *, at: float = 100.0, step: float = 1.0) -> list[Any]:
    values: list[Any] = []
    for _ in range(length):
        at += _SEEDED.gauss(0, step)
        values.append(at)
    return values


SERIES: dict[str, list[Any]] = {
    "a walk": walk(400),
    "a long one": walk(3000, at=60_000, step=50),
    "small numbers": walk(200, at=1e-8, step=1e-10),
    "large ones": walk(200, at=1e15, step=1e6),
    "with gaps": [None if place % 7 == 3 else value for place, value in enumerate(walk(300))],
    "flat": [5.5] * 120,
    "rising": [float(place) for place in range(150)],
    "a bad print": [*walk(100), 1e30, *walk(150)],
    "short": [1.0, 2.0, 3.0],
    "none": [],
}

FIGURES: dict[str, list[tuple[Any, ...]]] = {
    "sma": [(3,), (20,), (100,), (150,)],
    "ema": [(1,), (12,), (100,)],
    "rsi": [(14,), (2,), (100,)],
    "bollinger": [(20, 2), (5, 1.5), (100, 2)],
    "macd": [(12, 26, 9), (3, 5, 2)],
}

CODE = {
    "typescript": """
        const { series, calls } = await pyth.getSymbols();
        return series.map((data) => calls.map(([name, given]) => {
            const told = indicators[name === "bollinger" ? "bollingerBands" : name](data, ...given);
            return Array.isArray(told) ? [told] : Object.values(told);
        }).concat([[[indicators.standardDeviation(data)]]]).map((rows) => rows.map((row) => row.filter((_, i) =>
            i < 3 || i >= row.length - 60))));""",
    "python": """
told = await pyth.get_symbols()
def figure(name, data, given):
  if name == "sma":
    r = [indicators.sma(data, *given)]
  elif name == "ema":
    r = [indicators.ema(data, *given)]
  elif name == "rsi":
    r = [indicators.rsi(data, *given)]
  elif name == "bollinger":
    r = list(indicators.bollinger_bands(data, *given).values())
  else:
    r = list(indicators.macd(data, *given).values())
  return [row[:3] + row[max(3, len(row) - 60):] for row in r]
return [[figure(n, data, g) for n, g in told["calls"]] + [[[indicators.standard_deviation(data)]]]
        for data in told["series"]]""",
}


def expected(data: list[float | None]) -> list[list[list[float | None]]]:
    values = [math.nan if value is None else value for value in data]
    out = []
    for name, calls in FIGURES.items():
        for given in calls:
            told = getattr(core, name)(values, *given)
            rows = [listed(row) for row in (told if isinstance(told, tuple) else (told,))]
            out.append([[value for at, value in enumerate(row) if at < 3 or at >= len(row) - 60] for row in rows])
    whole = [value for value in data if value is not None]
    deviation = listed(core.deviation(whole, len(whole)))[-1] if whole else None
    return [*out, [[deviation]]]


async def test_figures_are_the_cores(run, language):
    for half in (list(SERIES)[::2], list(SERIES)[1::2]):  # so that what comes back is not too long
        calls = [(name, given) for name, all_given in FIGURES.items() for given in all_given]
        told = {"series": [SERIES[name] for name in half], "calls": calls}

        async def ask(method, arguments, told=told):
            return orjson.dumps(told)

        found = await run.value(CODE[language], language, ask=ask, timeout_ms=30_000)
        for name, ours in zip(half, found, strict=True):
            for figures, theirs in zip(ours, expected(SERIES[name]), strict=True):
                for row, other in zip(figures, theirs, strict=True):
                    same(name, row, other)


def same(name, row, other):
    assert len(row) == len(other), name
    scale = max((abs(value) for value in other if value is not None), default=1.0) or 1.0
    for value, wanted in zip(row, other, strict=True):
        assert (value is None) == (wanted is None), (name, row, other)
        if wanted is not None:
            assert value == pytest.approx(wanted, rel=1e-9, abs=1e-12 * scale), name


async def test_a_change_is_in_percent(run, language):
    code = {
        "typescript": "return [indicators.percentChange(100, 110), indicators.percentChange(0, 1)]",
        "python": "return [indicators.percent_change(100, 110), indicators.percent_change(0, 1)]",
    }
    first, second = await run.value(code[language], language)
    assert first == pytest.approx(10)
    assert second is None


async def test_defaults_are_the_usual_ones(run, language):
    data = [float(value) for value in walk(60) if value is not None]

    async def ask(method, arguments):
        return orjson.dumps(data)

    codes = {
        "typescript": """const d = await pyth.getSymbols(); const b = indicators.bollingerBands(d, 20);
            return [indicators.macd(d).signal.at(-1), b.upper.at(-1)]""",
        "python": """d = await pyth.get_symbols()
return [indicators.macd(d)["signal"][-1], indicators.bollinger_bands(d, 20)["upper"][-1]]""",
    }
    signal, upper = await run.value(codes[language], language, ask=ask)
    assert signal == pytest.approx(float(core.macd(data).signal[-1]), rel=1e-9)
    assert upper == pytest.approx(float(core.bollinger(data).upper[-1]), rel=1e-9)
