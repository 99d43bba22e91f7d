"""A backtest written into an event log: what backtest-events then says of it agrees with the engine."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import orjson
import pytest

from quantdeck.backtesting.engine import Backtest, Costs, Terms
from quantdeck.core.clock import Now
from quantdeck.core.errors import QueryFailed
from quantdeck.domain.event_times import micros
from quantdeck.domain.spec_reader import read
from quantdeck.domain.timeframes import TIMEFRAMES
from quantdeck.settings import Settings
from quantdeck.sources.backtester import Job
from quantdeck.sources.backtester.inprocess import InProcess
from quantdeck.sources.backtester.recording import record, recorded
from quantdeck.sources.events import EVER, Slice
from quantdeck.sources.events.embedded import EventFile, connect_to
from tests.support.bars import FAR, at, every, now, walk
from tests.support.specs import spec

HOUR = TIMEFRAMES["1h"]
BEGINS = at("2025-03-03T00:00")
CASH = 10_000.0
CROSSING: dict[str, Any] = {
    "indicators": [
        {"id": "fast", "type": "SMA", "input": "close", "params": {"period": "${fast}"}},
        {"id": "slow", "type": "SMA", "input": "close", "params": {"period": 20}},
    ],
    "entry_conditions": [{"type": "CROSSED_UP", "indicator": "fast", "params": {"crosses": "slow"}}],
    "exit_conditions": [{"type": "CROSSED_DOWN", "indicator": "fast", "params": {"crosses": "slow"}}],
    "parameters": [{"name": "fast", "type": "INTEGER", "min": 2, "max": 10, "defaultValue": 5}],
}
PATTERN = ("OrderPlaced", "TradeExecution", "PositionUpdate")
EVERY = Slice(0, 1000)


def job(many: int = 400, **said: Any) -> Job:
    strategy = read(**spec(**{**CROSSING, **said})).spec
    assert strategy is not None
    bars = walk(every(3600, BEGINS, many))
    return Job(strategy, {"fast": 4}, "BTC/USD", HOUR, bars, Terms(costs=Costs(0.001, 0.0005)))


def log_at(path: Path) -> EventFile:
    return connect_to(Settings(events=f"sqlite:///{path}"))


async def made_of(asked: Job, as_of: Now = FAR) -> Backtest:
    return await InProcess(1).whole(asked, as_of=as_of)


async def ending_with(decided: str) -> Job:
    """A job whose newest close decides this."""
    for many in range(60, 400):
        if (await made_of(job(many))).decision == decided:
            return job(many)
    raise AssertionError(f"no close decides to {decided}")


async def written(path: Path, asked: Job, as_of: Now = FAR) -> tuple[str, Backtest]:
    made = await made_of(asked, as_of)
    return await recorded(path, asked, made, as_of=as_of), made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "runs.db"


async def test_a_run_says_what_was_run_and_holds_no_malformed_event(path):
    run_id, made = await written(path, job())
    assert made.metrics.trades > 5
    log = log_at(path)
    (run,), total = await log.runs(EVERY, as_of=FAR)
    assert (total, run.run_id, run.strategy, run.status) == (1, run_id, "SMA_RSI", "complete")
    assert run.parameters == {
        "symbol": "BTC/USD", "timeframe": "1h", "parameters": {"fast": 4},
        "cash": CASH, "fee": 0.001, "slippage": 0.0005,
    }  # fmt: skip
    assert (run.started, run.ended) == (BEGINS * 10**6, (BEGINS + 400 * 3600) * 10**6)
    found = await log.invalid(run_id, None, EVERY, as_of=FAR)
    assert found is not None
    assert found.total == 0
    await log.close()


async def test_every_fill_is_the_child_of_its_order_and_the_father_of_its_position(path):
    run_id, made = await written(path, job())
    log = log_at(path)
    fills = made.trades.closed + len(made.trades)
    assert await log.chains(run_id, PATTERN, 10, EVERY, as_of=FAR) is not None
    chains, total = await log.chains(run_id, PATTERN, 10, EVERY, as_of=FAR) or ([], 0)
    assert total == fills
    assert all(len(chain.events) == 4 for chain in chains)  # and the profit beside the position
    pending = 1 if made.decision else 0
    assert (await log.chains(run_id, PATTERN, 10, EVERY, incomplete=True, as_of=FAR) or ([], 0))[1] == pending
    await log.close()


async def test_sums_over_the_log_are_the_engines_figures(path):
    run_id, made = await written(path, job())
    log = log_at(path)
    earned = await log.totals(run_id, "TradeExecution", "$.RealizedPnL", EVER, as_of=FAR)
    assert earned is not None
    assert earned.events == made.trades.closed + len(made.trades)
    assert earned.sum == pytest.approx(float(made.trades.profit[: made.trades.closed].sum()))
    equity = await log.totals(run_id, "StateChange", "$.Equity", EVER, as_of=FAR)
    assert equity is not None
    assert equity.most == pytest.approx(max(float(made.equity.max()), CASH))
    assert equity.least == pytest.approx(min(float(made.equity.min()), CASH))
    await log.close()


async def test_within_every_bar_the_log_knows_what_is_held_and_the_equity_of_the_close_before(path):
    run_id, made = await written(path, job())
    log, trades = log_at(path), made.trades
    for place in range(1, len(made.time), 3):
        state = await log.state(run_id, (int(made.time[place]) + 1800) * 10**6, as_of=FAR)
        assert state is not None
        held = (trades.begins <= place) & (place < trades.ends)
        assert sum(one.quantity or 0.0 for one in state.positions) == pytest.approx(float(trades.units[held].sum()))
        if place not in {*trades.begins.tolist(), *trades.ends.tolist()}:  # a fill moves the equity
            assert state.pnl.total == pytest.approx(float(made.equity[place - 1]) - CASH)
        assert state.pnl_source == "StateChange"
        assert state.orders == []
    await log.close()


async def test_an_order_names_the_figures_that_decided_it_and_the_reason(path):
    run_id, _ = await written(path, job())
    with closing(sqlite3.connect(path)) as connection:
        placed = [orjson.loads(text) for (text,) in connection.execute(
            "SELECT properties FROM events WHERE order_status = 'Placed' ORDER BY id"
        )]  # fmt: skip
    log = log_at(path)
    assert {order["Reason"] for order in placed} == {"fast crossed above slow", "fast crossed below slow"}
    for order in placed:
        named = [await log.chain(run_id, signal, (), 1, as_of=FAR) for signal in order["Signals"]]
        figures = [orjson.loads(chain.events[0].properties) for chain in named if chain is not None]
        fast, slow = (figure["Value"] for figure in figures)
        assert (fast > slow) == (order["Direction"] == "Buy")
    await log.close()


@pytest.mark.parametrize("decided, side", [("enter", "Buy"), ("leave", "Sell")])
async def test_what_the_newest_close_decided_is_an_order_that_waits(path, decided, side):
    asked = await ending_with(decided)
    run_id, _ = await written(path, asked)
    log = log_at(path)
    state = await log.state(run_id, micros(FAR), as_of=FAR)
    assert state is not None
    assert [order.direction for order in state.orders] == [side]
    await log.close()


async def test_a_run_is_known_from_the_instant_at_which_it_was_asked_for_and_not_before(path):
    clock = now(BEGINS + 300 * 3600)
    _, made = await written(path, job(), clock)
    assert len(made.time) == 300
    log = log_at(path)
    (run,), _ = await log.runs(EVERY, as_of=clock)
    assert (run.created, run.ended) == (micros(clock), micros(clock))
    assert await log.runs(EVERY, as_of=now(BEGINS + 300 * 3600 - 1)) == ([], 0)
    await log.close()


@pytest.mark.parametrize("many", [0, 1, 30])
async def test_a_backtest_without_a_trade_or_a_bar_is_a_run_too(path, many):
    run_id, _ = await written(path, job(many))
    log = log_at(path)
    run = await log.run(run_id, as_of=FAR)
    assert run is not None
    assert (run.status, run.events) == ("complete", 2 if many else 0)
    await log.close()


async def test_a_backtest_for_which_nobody_waits_is_a_run_that_failed(path):
    unwanted = Event()
    unwanted.set()
    run_id = record(path, job(), await made_of(job()), as_of=FAR, unwanted=unwanted)
    log = log_at(path)
    run = await log.run(run_id, as_of=FAR)
    assert run is not None
    assert run.status == "failed"
    await log.close()


async def test_a_log_that_cannot_be_written_is_an_error_without_its_place(tmp_path):
    (tmp_path / "other.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(QueryFailed, match="could not be written") as failed:
        await written(tmp_path / "other.db", job())
    assert str(tmp_path) not in failed.value.message
