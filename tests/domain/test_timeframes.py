"""Lengths of bars."""

import pytest

from quantdeck.domain.timeframes import DAY, MINUTE, TIMEFRAMES, FinerThanStored, derivable


def test_every_length_fills_a_day():
    assert all(DAY.is_made_of(timeframe) for timeframe in TIMEFRAMES.values())


@pytest.mark.parametrize("timeframe", TIMEFRAMES.values(), ids=str)
def test_an_open_is_its_own_bucket_and_the_second_before_belongs_to_the_one_before(timeframe):
    open_s = 1_700_006_400 // 86_400 * 86_400
    assert timeframe.floor(open_s) == timeframe.ceil(open_s) == open_s
    assert timeframe.floor(open_s - 0.001) == open_s - timeframe.seconds
    assert timeframe.ceil(open_s + 0.001) == open_s + timeframe.seconds


def test_buckets_before_1970_begin_at_whole_multiples_too():
    assert (DAY.floor(-1), DAY.ceil(-1)) == (-86_400, 0)


def test_only_lengths_that_whole_bars_fill_can_be_derived():
    assert [timeframe.name for timeframe in derivable(TIMEFRAMES["4h"])] == ["4h", "8h", "12h", "1d"]
    assert derivable(DAY) == [DAY]
    assert derivable(MINUTE) == list(TIMEFRAMES.values())


def test_what_is_too_fine_is_told_with_what_there_is():
    error = FinerThanStored("AAPL", TIMEFRAMES["1h"], DAY)
    assert str(error) == "AAPL is stored in bars of 1d, of which no 1h can be made; there are 1d"
    assert error.available == ["1d"]
