"""The demo market: a pure function of seed, symbol and minute that behaves as markets do."""

from datetime import UTC, date, datetime
from functools import cache

import numpy as np
import pytest

from quantdeck.domain.arrays import Floats
from quantdeck.domain.candles import Bars, faults, joined
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.domain.demo_market import DAY_S, DemoMarket
from quantdeck.domain.demo_sessions import shape_of
from quantdeck.domain.timeframes import MINUTE

EPOCH = date(1970, 1, 1)


def day_of(year: int, month: int, day: int) -> int:
    return (date(year, month, day) - EPOCH).days


@cache
def market(seed: int = 7) -> DemoMarket:
    return DemoMarket(seed, shape_of)


def days(symbol: str, first: int, count: int) -> Bars:
    return joined([market().day(INSTRUMENTS[symbol], first + n) for n in range(count)])


def clock(bars: Bars, place: int) -> str:
    return datetime.fromtimestamp(int(bars.time[place]), UTC).strftime("%H:%M")


@pytest.mark.parametrize("symbol", INSTRUMENTS)
def test_every_bar_is_sound_and_inside_its_day(symbol):
    first = day_of(2026, 1, 12)
    for number in range(first, first + 7):
        bars = market().day(INSTRUMENTS[symbol], number)
        assert faults(bars, MINUTE) == {}
        assert len(bars.between(number * DAY_S, (number + 1) * DAY_S)) == len(bars)
        assert (np.diff(bars.time) > 0).all()
        assert (bars.low > 0).all()


def test_any_day_is_the_same_whichever_was_asked_for_before():
    asked_alone = market().day(INSTRUMENTS["AAPL"], 20_500)
    other = DemoMarket(7, shape_of)
    for number in (20_600, 19_000, 20_499):
        other.day(INSTRUMENTS["AAPL"], number)
    again = other.day(INSTRUMENTS["AAPL"], 20_500)
    assert all((one == two).all() for one, two in zip(asked_alone.columns(), again.columns(), strict=True))


def test_seeds_and_symbols_are_different_worlds():
    bitcoin = market().day(INSTRUMENTS["BTC/USD"], 20_500)
    assert not (bitcoin.close == market(8).day(INSTRUMENTS["BTC/USD"], 20_500).close).any()
    euro, pound = (np.diff(np.log(market().day(INSTRUMENTS[s], 20_500).close)) for s in ("EUR/USD", "GBP/USD"))
    assert abs(np.corrcoef(euro, pound)[0, 1]) < 0.2


def test_a_known_minute_has_its_known_price():
    # On another machine and by another release of numpy too: the tutorial prints such numbers.
    bars = market().day(INSTRUMENTS["BTC/USD"], day_of(2026, 6, 1))
    assert [float(column[720]) for column in bars.columns()] == [
        1780315200.0,
        66004.63,
        66043.87,
        65837.09,
        65868.13,
        11.267111,
    ]


def test_a_day_begins_where_the_one_before_ended():
    bars = days("BTC/USD", 20_500, 5)
    assert (bars.open[1:] == bars.close[:-1]).all()


def test_blocks_join_without_a_seam():
    bitcoin = INSTRUMENTS["BTC/USD"]
    offset = market()._offset(bitcoin)
    seam = 10 * 2048 - offset
    before, after = market().day(bitcoin, seam - 1), market().day(bitcoin, seam)
    assert after.open[0] == before.close[-1]


def returns(symbol: str, count: int = 60) -> Floats:
    bars = days(symbol, 20_400, count)
    moves: Floats = np.diff(np.log(bars.close))[np.diff(bars.time) == 60]
    return moves


@pytest.mark.parametrize("symbol", ["BTC/USD", "AAPL", "EUR/USD", "XAU/USD", "ACHR"])
def test_volatility_clusters_and_tails_are_fat(symbol):
    moves = returns(symbol)
    size = np.abs(moves)
    assert np.corrcoef(size[1:], size[:-1])[0, 1] > 0.1
    assert ((moves - moves.mean()) ** 4).mean() / moves.var() ** 2 > 5
    assert abs(np.corrcoef(moves[1:], moves[:-1])[0, 1]) < 0.05  # and its direction cannot be foretold


@pytest.mark.parametrize("symbol", ["BTC/USD", "SPY", "EUR/USD"])
def test_days_move_as_much_as_the_instrument_says(symbol):
    ends = [market().ends(INSTRUMENTS[symbol], day)[0] for day in range(18_000, 20_000)]
    trading = [shape_of(INSTRUMENTS[symbol], day).variance.sum() > 0.5 for day in range(18_000, 19_999)]
    moved = np.diff(ends)[trading].std()
    assert moved == pytest.approx(INSTRUMENTS[symbol].daily_volatility, rel=0.3)


def test_a_stock_trades_most_at_its_opening_and_its_close():
    shape = shape_of(INSTRUMENTS["AAPL"], day_of(2026, 1, 14))
    regular = shape.volume[14 * 60 + 30 : 21 * 60]
    assert regular[0] > regular[-1] > 2 * regular[len(regular) // 2]
    assert regular.sum() == pytest.approx(0.97)


@pytest.mark.parametrize(
    "day, first, last, bars",
    [
        ((2026, 1, 14), "00:00", "23:59", 960),  # winter: with the evening of the day before
        ((2026, 7, 15), "08:00", "23:59", 960),
        ((2026, 11, 27), "09:00", "21:59", 780),  # the day after Thanksgiving closes early
    ],
)
def test_stocks_keep_new_yorks_hours(day, first, last, bars):
    found = market().day(INSTRUMENTS["AAPL"], day_of(*day))
    assert (clock(found, 0), clock(found, -1), len(found)) == (first, last, bars)


@pytest.mark.parametrize("day", [(2026, 7, 3), (2026, 7, 4), (2026, 7, 5), (2025, 12, 25)])
def test_stocks_have_no_bar_on_holidays_and_weekends(day):
    assert len(market().day(INSTRUMENTS["SPY"], day_of(*day))) == 0


def test_currencies_rest_from_friday_to_sunday_evening():
    friday, saturday, sunday = (market().day(INSTRUMENTS["EUR/USD"], day_of(2026, 1, day)) for day in (16, 17, 18))
    assert (clock(friday, -1), len(saturday), clock(sunday, 0)) == ("21:59", 0, "22:00")


def test_the_planted_gap_is_there_every_wednesday():
    ethereum = market().day(INSTRUMENTS["ETH/USD"], day_of(2026, 1, 14))
    gap = np.flatnonzero(np.diff(ethereum.time) != 60)
    assert [(clock(ethereum, int(place)), clock(ethereum, int(place) + 1)) for place in gap] == [("01:59", "02:30")]
    assert len(market().day(INSTRUMENTS["ETH/USD"], day_of(2026, 1, 15))) == 1440
