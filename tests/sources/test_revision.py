"""The mark by which readers see that others have written."""

from __future__ import annotations

from quantdeck.sources.sql.revision import Revision
from tests.support.clock import Ticks


class Table:
    """Something that others write to, and what is asked of it."""

    def __init__(self) -> None:
        self.written = self.asked = 0

    async def mark(self) -> int:
        self.asked += 1
        return self.written


async def test_is_asked_anew_only_when_its_time_has_run_out():
    table, ticks = Table(), Ticks()
    revision = Revision(table.mark, keep_s=0.5, clock=ticks)
    assert [await revision(), await revision(), table.asked] == [0, 0, 1]
    table.written = 1
    ticks.advance(0.49)
    assert [await revision(), table.asked] == [0, 1]
    ticks.advance(0.01)
    assert [await revision(), table.asked] == [1, 2]


async def test_our_own_write_is_seen_at_once():
    table, ticks = Table(), Ticks()
    revision = Revision(table.mark, clock=ticks)
    await revision()
    table.written = 1
    revision.changed()
    assert await revision() == 1


async def test_a_mark_asked_for_before_our_write_does_not_stand_for_after_it():
    table, ticks = Table(), Ticks()

    async def written_meanwhile() -> int:
        seen = await table.mark()
        if table.asked == 1:
            table.written = 1
            revision.changed()
        return seen

    revision = Revision(written_meanwhile, clock=ticks)
    assert [await revision(), await revision()] == [0, 1]
