"""A job of ours as one message: everything that the engine is given, so that its answer is the same anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from quantdeck.backtesting.engine import Costs, Terms
from quantdeck.backtesting.messages.candles import columns_of, of_columns
from quantdeck.backtesting.protocol import quantdeck_pb2
from quantdeck.backtesting.protocol.backtesting_pb2 import BacktestRequest
from quantdeck.domain.calendars import CRYPTO, FX, METALS, NYSE, Market
from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read
from quantdeck.domain.strategy_specs import RunnableSpec, StrategySpec, UnfitParametersError

__all__ = ["MARKETS", "Asked", "as_request", "of_job", "runnable"]

MARKETS: Mapping[str, Market] = {"crypto": CRYPTO, "fx": FX, "metal": METALS, "stock": NYSE}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request comes to."""

    spec: RunnableSpec
    bars: Bars
    terms: Terms
    whole: bool = False


def as_request(
    spec: StrategySpec, parameters: Mapping[str, Any], symbol: str, bars: Bars, terms: Terms, *, whole: bool = False
) -> bytes:
    """A BacktestRequest of a job, as bytes.

    Its columns are copied but once, which is most of the work: a message that comes in two parts is one to its reader.
    """
    columns, data = columns_of(bars)
    job = quantdeck_pb2.Job(
        name=spec.name,
        spec=orjson.dumps(spec.stored()),
        parameters=orjson.dumps(dict(parameters)),
        symbol=symbol,
        terms=quantdeck_pb2.Terms(
            market=next(name for name, market in MARKETS.items() if market is terms.market),
            cash=terms.cash,
            fee=terms.costs.fee,
            slippage=terms.costs.slippage,
            risk_free=terms.risk_free,
        ),
        bars=columns,
        whole=whole or None,
    )
    pieces: list[bytes | memoryview] = []
    for number, column in data.items():
        pieces += [_head(number, len(column)), column]
    for number in (quantdeck_pb2.Job.DESCRIPTOR.fields_by_name["bars"].number, _JOB):
        pieces.insert(0, _head(number, sum(map(len, pieces))))
    return b"".join([BacktestRequest(job=job).SerializeToString(), *pieces])


_JOB = BacktestRequest.DESCRIPTOR.fields_by_name["job"].number


def _head(number: int, size: int) -> bytes:
    """What stands before so many bytes of a field."""
    return _varint(number << 3 | 2) + _varint(size)


def _varint(value: int) -> bytes:
    said = bytearray()
    while value > 0x7F:
        said.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*said, value])


def of_job(job: quantdeck_pb2.Job, problems: list[str]) -> Asked | None:
    """Read one; None where it cannot be done, and all the reasons."""
    spec = _spec(job, problems)
    terms = _terms(job.terms, problems)
    bars = of_columns(job.bars, problems)
    return None if spec is None or terms is None or bars is None else Asked(spec, bars, terms, job.whole)


def runnable(spec: StrategySpec, numbers: Mapping[str, Any], problems: list[str]) -> RunnableSpec | None:
    """The spec with its numbers; None where they are unfit, and why."""
    try:
        return spec.instantiate(numbers)
    except UnfitParametersError as error:
        problems.append(str(error))
        return None


def _spec(job: quantdeck_pb2.Job, problems: list[str]) -> RunnableSpec | None:
    lists, numbers = _object(job.spec, "spec", problems), _object(job.parameters or b"{}", "parameters", problems)
    if lists is None or numbers is None:
        return None
    parts = ("indicators", "entry_conditions", "exit_conditions", "parameters")
    if unknown := sorted(lists.keys() - set(parts)):
        problems.append(f"the spec has unknown parts: {', '.join(unknown)[:200]}")
    reading = read(name=job.name, **{part: lists.get(part) for part in parts})
    problems += [f"{one.path}: {one.message}" for one in reading.problems]
    return None if reading.spec is None else runnable(reading.spec, numbers, problems)


def _object(said: bytes, what: str, problems: list[str]) -> dict[str, Any] | None:
    try:
        found = orjson.loads(said)
    except orjson.JSONDecodeError:
        found = None
    if isinstance(found, dict):
        return found
    problems.append(f"the {what} of the job are no JSON object")
    return None


def _terms(said: quantdeck_pb2.Terms, problems: list[str]) -> Terms | None:
    usual = Terms()
    market = MARKETS.get(said.market or "crypto")
    if market is None:
        problems.append(f"there is no market {said.market[:40]!r}; there are {', '.join(MARKETS)}")
        return None

    def given(name: str, otherwise: float) -> float:
        return float(getattr(said, name)) if said.HasField(name) else otherwise

    try:
        costs = Costs(given("fee", usual.costs.fee), given("slippage", usual.costs.slippage))
        return Terms(market, given("cash", usual.cash), costs, given("risk_free", usual.risk_free))
    except ValueError as error:
        problems.append(str(error))
        return None
