"""The leak test that all sources share does see a leak."""

from __future__ import annotations

import pytest

from quantdeck.core.clock import Now
from quantdeck.core.contract import Source
from tests.support.desk import LATER, NOON
from tests.support.leaks import Reads, assert_sealed, reads_of

KNOWN: Reads = {"known": lambda diary, as_of: diary.known(as_of=as_of)}
ALL: Reads = {**KNOWN, "everything": lambda diary, as_of: diary.everything(as_of=as_of)}


class Diary(Source):
    """What was written, and when."""

    def __init__(self) -> None:
        self.pages = {"begun": NOON}

    async def known(self, *, as_of: Now) -> list[str]:
        return [page for page, at in self.pages.items() if at <= as_of]

    async def write(self) -> None:
        self.pages["later"] = LATER


class Leaking(Diary):
    async def everything(self, *, as_of: Now) -> list[str]:
        del as_of
        return list(self.pages)


class Timeless(Diary):
    async def everything(self) -> list[str]:
        return list(self.pages)


class Lenient(Diary):
    async def everything(self, *, as_of: Now | None = None) -> list[str]:
        return [page for page, at in self.pages.items() if as_of is None or at <= as_of]


async def sealed(diary: Diary, reads: Reads) -> None:
    await assert_sealed(diary, reads, diary.write, at=NOON, later=LATER, no_reads={"write"})


async def test_a_source_that_heeds_the_instant_passes():
    await sealed(Diary(), KNOWN)


async def test_a_read_that_does_not_is_seen():
    with pytest.raises(AssertionError, match="became known later is in an answer"):
        await sealed(Leaking(), ALL)


async def test_a_new_read_is_missed_in_the_dict():
    with pytest.raises(AssertionError, match="give each read of Leaking its leak test"):
        await sealed(Leaking(), KNOWN)


@pytest.mark.parametrize("kind", [Timeless, Lenient])
def test_a_read_that_can_be_asked_without_an_instant_is_refused(kind):
    with pytest.raises(AssertionError, match="everything must take"):
        reads_of(kind, no_reads={"write"})


async def test_a_question_that_could_not_show_a_leak_is_no_test():
    async def nothing() -> None: ...

    with pytest.raises(AssertionError, match="would not show in known"):
        await assert_sealed(Diary(), KNOWN, nothing, at=NOON, later=LATER, no_reads={"write"})
