"""Sweeps on processes: the same as one point after another, whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from io import BytesIO
from pathlib import Path

import pytest

from quantdeck.backtesting.sweeps import SweepFailedError
from quantdeck.backtesting.sweeps.frames import framed, receive_sync
from quantdeck.backtesting.sweeps.journal import Journal, JournalInUseError, digest
from quantdeck.backtesting.sweeps.pool import Pool
from quantdeck.backtesting.sweeps.worker import READY, serve
from tests.backtesting.swept import ASKED, Heard, points, serial, swept, task

FRAGILE = (sys.executable, str(Path(__file__).with_name("fragile_worker.py")))
SLOW = 400_000  # bars of which a point takes long enough to be met


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("processes", [1, 3])
async def test_it_is_what_one_point_after_another_comes_to(tmp_path, processes):
    heard, runner = Heard(), Pool(processes)
    before, found = await swept(tmp_path, task(), points(), runner, heard)
    assert found == serial(task(), points())
    assert before == 0
    assert heard.counts[-1] == len(points())
    assert heard.counts == sorted(heard.counts)
    assert not runner.running


async def test_a_point_with_which_nothing_can_be_computed_is_named_and_ends_no_other(tmp_path):
    _, found = await swept(tmp_path, task(), points(), Pool(2))
    unfit = {points()[one.number] for one in found if one.metrics is None}
    assert unfit == {numbers for numbers in points() if numbers[0] > numbers[1]} != set()
    assert all("above longPeriod" in one.problem for one in found if one.metrics is None)


async def test_processes_that_are_killed_are_replaced_and_nothing_is_missing(tmp_path):
    runner = Pool(2)
    killed: set[int] = set()

    def kill(done: int) -> None:
        if len(killed) < 3 and (pids := runner.running - killed):
            killed.add(pid := min(pids))
            os.kill(pid, signal.SIGKILL)

    which, asked = points("fast=2:9", "slow=30,40"), task(20_000)
    _, found = await swept(tmp_path, asked, which, runner, Heard(kill))
    assert found == serial(asked, which)
    assert len(killed) == 3


async def test_a_point_that_ends_every_process_is_given_up_and_is_not_remembered(tmp_path):
    which = points("fast=2:6", "width=2,99999")
    _, found = await swept(tmp_path, task(), which, Pool(2, FRAGILE))
    assert [which[one.number][2] for one in found if one.lost] == [99999] * 5
    assert all("ended, 3 times" in one.problem for one in found if one.lost)
    sound = [number for number, numbers in enumerate(which) if numbers[2] == 2]
    assert [one for one in found if not one.lost] == [serial(task(), which)[number] for number in sound]
    before, found = await swept(tmp_path, task(), which, Pool(2))
    assert before == len(sound)
    assert found == serial(task(), which)


async def test_nothing_goes_on_running_when_nobody_waits_any_more(tmp_path):
    runner = Pool(2)
    sweeping = asyncio.ensure_future(swept(tmp_path, task(SLOW), points("fast=2:20", "slow=30:60"), runner))
    async with asyncio.timeout(20):
        while len(runner.running) < 2:  # noqa: ASYNC110 - it tells nobody when it has begun
            await asyncio.sleep(0.005)
    pids = set(runner.running)
    assert all(os.getsid(pid) != os.getsid(0) for pid in pids)  # or a terminal's Ctrl-C would be theirs to hear
    sweeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sweeping
    assert not any(map(is_there, pids))


async def test_processes_that_can_do_nothing_end_the_sweep_with_a_sentence(tmp_path):
    with pytest.raises(SweepFailedError, match="end before they can compute anything"):
        await swept(tmp_path, task(), points(), Pool(2, (sys.executable, "-c", "")))


def test_a_worker_answers_until_its_input_ends():
    batch = list(enumerate(points()[:3]))
    asked, told = BytesIO(framed(task()) + framed(batch) + b"half"), BytesIO()
    serve(asked, told)
    told.seek(0)
    assert receive_sync(told) == READY
    assert receive_sync(told) == task().outcomes(batch)
    with pytest.raises(EOFError):
        receive_sync(told)


async def test_a_sweep_that_was_broken_off_goes_on_where_it_stopped(tmp_path):
    """Wherever its journal was cut, in the middle of a line too."""
    which = points("fast=2:5", "slow=3:6:3")
    whole = serial(task(), which)
    with Journal.open(tmp_path, ASKED) as journal:
        journal.begin({"of": "a test"})
        journal.add(whole[::-1])
    (path,) = tmp_path.iterdir()
    written = path.read_bytes()
    ends = [at for at, byte in enumerate(written) if byte == ord("\n")]  # where a line is whole but for its end
    for cut in (*range(0, len(written), 97), *ends):
        path.write_bytes(written[:cut])
        heard = Heard()
        before, found = await swept(tmp_path, task(), which, Alone(), heard)
        assert found == whole
        assert before == max(written[:cut].count(b"\n") - 1, 0)
        assert (not heard.counts) == (before == len(whole))
        with Journal.open(tmp_path, ASKED) as journal:  # and nothing of the half line is left among what came since
            assert sorted(journal.done, key=lambda one: one.number) == whole


class Alone:
    """A runner without processes."""

    async def run(self, task, batches, tell) -> None:
        while batch := batches.take():
            tell(task.outcomes(batch))


async def test_whatever_else_stands_in_a_journal_is_no_outcome(tmp_path):
    path = tmp_path / f"{ASKED}.jsonl"
    for garbage in (b"\xff\xfe\n", b"[]\n[]\n", b'{"of":"a test"}\n[1]\n', b'{"of":"a test"}\n{"a":1}\n', b"\n\n"):
        path.write_bytes(garbage)
        before, found = await swept(tmp_path, task(), points()[:4], Alone())
        assert (before, found) == (0, serial(task(), points()[:4]))


def test_two_do_not_go_on_with_the_same_sweep(tmp_path):
    with (
        Journal.open(tmp_path, ASKED),
        pytest.raises(JournalInUseError, match="running already"),
        Journal.open(tmp_path, ASKED),
    ):
        pass
    journal_of_another = Journal.open(tmp_path, "b" * 64)
    with journal_of_another as other:
        assert other.head is None


def test_a_sweep_of_which_nothing_is_done_leaves_nothing_and_an_old_one_is_forgotten(tmp_path):
    with Journal.open(tmp_path, ASKED) as journal:
        journal.begin({"of": "a test"})
    assert list(tmp_path.iterdir()) == []
    for name, age_days in (("old", 31), ("new", 29)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("{}\n")
        os.utime(path, times=(path.stat().st_mtime - age_days * 86_400,) * 2)
    with Journal.open(tmp_path, ASKED):
        assert {path.stem for path in tmp_path.iterdir()} == {"new", ASKED}


def test_another_bar_makes_another_digest():
    bars = task().bars
    assert digest(*bars.columns()) == digest(*task().bars.columns())
    assert digest(*bars.columns()) != digest(*bars[:-1].columns())
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1, "b": 3})
