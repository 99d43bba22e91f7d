"""Which points a sweep has: all of a grid, or so many drawn at random.

    period=10,20,40       these
    period=10:50:5        from 10 to 50, both included, by 5
    period=10:20          by 1; only of an INTEGER
    period=5,10:30:10     and any of them together

What is not named stays at its default in a grid; at random it is drawn from its own range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice, product
from math import prod
from random import Random

from quantdeck.backtesting.sweeps import Numbers
from quantdeck.domain.strategy_specs import Parameter, StrategySpec

__all__ = ["MOST_POINTS", "GridProblem", "Values", "drawn", "grid", "read_values"]

MOST_POINTS = 100_000

_STEPS = 10_000
"""Into so many a DOUBLE's range is cut from which numbers are drawn: they stay short, and no two are nearly one."""

_LARGEST = Decimal(10) ** 15

Values = dict[str, list[int | float]]


class GridProblem(ValueError):
    """What was said of the points cannot be understood, or there would be too many."""


def read_values(spec: StrategySpec, said: Sequence[str]) -> Values:
    """The numbers for each parameter that is named, without repetitions and in the order in which they were said."""
    parameters = {one.name: one for one in spec.parameters}
    found: Values = {}
    for text in said:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or not values.strip():
            raise GridProblem(f"{text[:60]!r} is not NAME=VALUES, such as period=10:50:5 or period=10,20,40")
        if name not in parameters:
            raise GridProblem(f"{spec.name} has no parameter {name[:60]!r}; {_offered(spec)}")
        if name in found:
            raise GridProblem(f"{name!r} is said twice; put its values together with commas")
        found[name] = list(dict.fromkeys(n for part in values.split(",") for n in _part(parameters[name], part)))
        _bounded(name, len(found[name]))
    return found


def grid(spec: StrategySpec, values: Values) -> list[Numbers]:
    """Every combination, the last parameter's numbers changing first."""
    if not values:
        raise GridProblem(f"a grid wants at least one parameter's values; {_offered(spec)}")
    domains = [values.get(one.name, [_default(one)]) for one in spec.parameters]
    _bounded("the grid", prod(map(len, domains)))
    return list(product(*domains))


def drawn(spec: StrategySpec, values: Values, many: int, seed: int) -> list[Numbers]:
    """So many different points, the same for the same seed; all there are where there are no more than that."""
    if not spec.parameters:
        raise GridProblem(f"{spec.name} has no parameters, so there is nothing to draw")
    _bounded("--random", many)
    if many < 1:
        raise GridProblem("--random draws 1 or more points")
    domains = [values.get(one.name) or _range(one) for one in spec.parameters]
    size, random = prod(map(len, domains)), Random(seed)  # noqa: S311 - points, not secrets
    if many >= size:
        places: Sequence[int] = range(size)
    elif size <= 2 * MOST_POINTS:
        places = random.sample(range(size), many)
    else:
        places = list(islice(_different(random, size), many))
    return [_at(place, domains) for place in places]


def _different(random: Random, size: int) -> Iterator[int]:
    seen: set[int] = set()
    while True:
        place = random.randrange(size)
        if place not in seen:
            seen.add(place)
            yield place


def _at(place: int, domains: Sequence[Sequence[int | float]]) -> Numbers:
    """The point at a place of the grid that these domains span."""
    numbers = []
    for domain in reversed(domains):
        place, which = divmod(place, len(domain))
        numbers.append(domain[which])
    return tuple(reversed(numbers))


def _range(one: Parameter) -> Sequence[int | float]:
    """Where an optimiser looks, as the spec says it."""
    if one.type == "INTEGER":
        return range(int(one.min), int(one.max) + 1)
    low, high = Decimal(repr(one.min)), Decimal(repr(one.max))
    step = (high - low) / _STEPS
    return list(dict.fromkeys(float(low + step * place) for place in range(_STEPS + 1)))


def _part(one: Parameter, text: str) -> list[int | float]:
    said = [_decimal(one, each) for each in text.split(":")]
    if len(said) == 1:
        return [_number(one, said[0])]
    if len(said) == 2 and one.type == "INTEGER":
        said.append(Decimal(1))
    if len(said) != 3:
        raise GridProblem(f"{text.strip()[:60]!r} of {one.name!r} is no FROM:TO:STEP; a DOUBLE needs its step")
    begin, end, step = said
    if not step > 0 or end < begin:
        raise GridProblem(f"{text.strip()[:60]!r} of {one.name!r} goes nowhere: FROM is not above TO, STEP above 0")
    many = int((end - begin) / step) + 1
    _bounded(f"{one.name}={text.strip()[:60]}", many)
    return [_number(one, begin + step * place) for place in range(many)]


def _decimal(one: Parameter, text: str) -> Decimal:
    try:
        number = Decimal(text.strip()) if len(text) <= 40 and text.isascii() else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number) >= _LARGEST or number.as_tuple().exponent < -40:  # type: ignore[operator]
        raise GridProblem(f"{text.strip()[:40]!r} of {one.name!r} is no number")
    return number


def _number(one: Parameter, said: Decimal) -> int | float:
    number = one.number(float(said))
    if number is None:
        raise GridProblem(f"{said:f} is no whole number, which {one.name!r} takes")
    return number


def _default(one: Parameter) -> int | float:
    number = one.number(one.default)
    assert number is not None, "the spec was read"
    return float(number) if one.type == "DOUBLE" else number


def _bounded(what: str, many: int) -> None:
    if many > MOST_POINTS:
        raise GridProblem(f"{what} has {many:,} points; at most {MOST_POINTS:,} are swept at once")


def _offered(spec: StrategySpec) -> str:
    ranges = [f"{one.name} ({one.type}, {one.min:g} to {one.max:g})" for one in spec.parameters]
    return f"there are {', '.join(ranges)}" if ranges else "it has none, so there is nothing to sweep"
