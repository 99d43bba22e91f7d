"""Backtests on this machine: the same in a thread and in a process, and gone when nobody waits."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import Any

import pytest

from quantdeck.backtesting.engine import Metrics, run
from quantdeck.core.errors import NotConfigured, QueryFailed
from quantdeck.domain.candles import Bars
from quantdeck.domain.spec_reader import read
from quantdeck.domain.timeframes import MINUTE
from quantdeck.sources.backtester import Backtester, Job, Tell
from quantdeck.sources.backtester.inprocess import SMALL, InProcess
from tests.support.bars import FAR, at, every, now, walk
from tests.support.specs import spec

BEGINS = at("2025-03-03T00:00")
LARGE = SMALL // 3 + 1  # bars for two indicators that are too much for a thread


def job(bars: Bars, parameters: dict[str, Any] | None = None, **said: Any) -> Job:
    strategy = read(**spec(**said)).spec
    assert strategy is not None
    return Job(strategy, parameters or {}, "BTC/USD", MINUTE, bars)


def minutes(many: int) -> Bars:
    return walk(every(60, BEGINS, many))


@pytest.mark.parametrize("many", [500, 10_000, LARGE], ids=["at once", "in a thread", "in a process"])
async def test_a_backtest_is_what_the_engine_says(many):
    asked = job(minutes(many), {"period": 12})
    heard: list[float] = []

    async def tell(share: float) -> None:
        heard.append(share)

    found = await InProcess(1).run(asked, tell, as_of=FAR)
    assert found == run(asked.spec.instantiate({"period": 12}), asked.bars, asked.terms).metrics
    assert heard == (pytest.approx([1 / 3, 2 / 3]) if many == LARGE else [])


@pytest.mark.parametrize("many", [500, 10_000, LARGE], ids=["at once", "in a thread", "in a process"])
async def test_the_whole_of_it_has_the_trades_and_the_equity_as_well(many):
    asked = job(minutes(many))
    found, made = await InProcess(1).whole(asked, as_of=FAR), run(asked.spec.instantiate(), asked.bars, asked.terms)
    assert found.metrics == made.metrics
    assert found.trades.rows() == made.trades.rows()
    assert found.equity.tolist() == made.equity.tolist()


async def test_a_backtester_that_tells_figures_only_says_so_when_asked_for_more():
    class Remote(Backtester):
        async def _run(self, job: Job, tell: Tell) -> Metrics:
            raise AssertionError

    with pytest.raises(NotConfigured, match="unset"):
        await Remote().whole(job(minutes(5)), as_of=FAR)


async def test_no_bar_that_closes_after_the_clock_is_seen():
    bars = minutes(400)
    for seconds, seen in ((300 * 60, 300), (301 * 60 - 1, 300), (0, 0), (10**6, 400)):
        found = await InProcess(1).run(job(bars), as_of=now(BEGINS + seconds))
        assert found == run(job(bars).spec.instantiate(), bars[:seen]).metrics
        whole = await InProcess(1).whole(job(bars), as_of=now(BEGINS + seconds))
        assert (whole.metrics, len(whole.equity)) == (found, seen)


async def started(source: InProcess) -> int:
    """The process of the only job there is, once there is one."""
    async with asyncio.timeout(20):
        while not source.running:  # noqa: ASYNC110 - it tells nobody when it has begun
            await asyncio.sleep(0.005)
    (pid,) = source.running
    return pid


def is_there(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def test_a_job_for_which_nobody_waits_is_killed():
    source = InProcess(1)
    waiting = asyncio.ensure_future(source.run(job(minutes(LARGE)), as_of=FAR))
    pid = await started(source)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not is_there(pid)
    assert not source.running


async def test_a_deadline_ends_a_job_and_frees_its_place():
    source = InProcess(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await source.run(job(minutes(LARGE)), as_of=FAR)
    assert not source.running
    assert (await source.run(job(minutes(LARGE)), as_of=FAR)).exposure is not None


async def test_a_process_that_dies_is_an_error_and_no_hanging():
    source = InProcess(1)
    waiting = asyncio.ensure_future(source.run(job(minutes(LARGE)), as_of=FAR))
    os.kill(await started(source), signal.SIGKILL)
    with pytest.raises(QueryFailed, match="ended before it had a result"):
        await waiting


async def test_no_more_processes_run_than_there_are_places():
    source, most = InProcess(2), 0
    jobs = [asyncio.ensure_future(source.run(job(minutes(LARGE)), as_of=FAR)) for _ in range(4)]
    while not all(one.done() for one in jobs):
        most = max(most, len(source.running))
        await asyncio.wait(jobs, timeout=0.002)
    assert most == 2
    assert len({one.result() for one in jobs}) == 1
