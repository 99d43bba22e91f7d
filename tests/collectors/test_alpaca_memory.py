"""What the collector remembers of its streams, and whose version of a bar is the later."""

from __future__ import annotations

from quantdeck.collectors.alpaca.memory import LIMIT, Memory
from quantdeck.domain.candles import Bars
from tests.support.bars import every, walk

BARS = walk(every(60, 1_800_000_000, 3))
ROW = (1.0, 2.0, 0.5, 1.5, 10.0)
FIRST, SECOND, THIRD = BARS.time.tolist()


def opens(bars: Bars) -> list[int]:
    return [int(opened) for opened in bars.time]


def test_what_this_connection_brought_is_later_than_rest_and_what_an_earlier_one_did_is_not():
    memory = Memory()
    memory.put("AAPL", SECOND, ROW)
    assert opens(memory.unheard("AAPL", BARS)) == [FIRST, THIRD]
    assert opens(memory.unheard("TSLA", BARS)) == [FIRST, SECOND, THIRD]
    memory.begin(("AAPL",))
    assert opens(memory.unheard("AAPL", BARS)) == [FIRST, SECOND, THIRD]


def test_what_comes_back_unsaved_gives_way_to_what_came_meanwhile():
    memory = Memory()
    memory.put("AAPL", FIRST, ROW)
    memory.put("AAPL", SECOND, ROW)
    taken = memory.take()["AAPL"]
    memory.put("AAPL", SECOND, (9.0, 9.0, 9.0, 9.0, 9.0))
    assert memory.give_back("AAPL", taken) is None
    assert memory.take()["AAPL"].close.tolist() == [1.5, 9.0]


def test_of_too_many_the_oldest_goes_and_is_named():
    memory = Memory()
    many = every(60, FIRST, LIMIT + 1)
    assert [memory.put("AAPL", opened, ROW) for opened in many] == [None] * LIMIT + [FIRST]
    assert len(memory) == LIMIT
