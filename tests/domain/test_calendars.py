"""When markets are open: against the calendar that the exchange's followers keep, and at every edge."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import exchange_calendars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantdeck.domain.calendars import CRYPTO, FX, METALS, NYSE, Market, market_of

# The oracle itself is behind the pandas that it asks for.
pytestmark = pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")

MARKETS = pytest.mark.parametrize("market", [NYSE, FX, METALS, CRYPTO], ids=["NYSE", "FX", "METALS", "CRYPTO"])
NEW_YORK = ZoneInfo("America/New_York")
SECOND = timedelta(seconds=1)

INSTANTS = st.integers(*(int(datetime(year, 12, 1, tzinfo=UTC).timestamp() * 1e6) for year in (2009, 2027))).map(
    lambda micros: datetime.fromtimestamp(micros // 10**6, UTC) + timedelta(microseconds=micros % 10**6)
)


def new_york(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=NEW_YORK)


def on(day: tuple[int, int, int], hour: int, minute: int = 0) -> datetime:
    return new_york(*day, hour, minute)


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def at(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(epoch_s, UTC)


@pytest.fixture(scope="module")
def oracle():
    return exchange_calendars.get_calendar("XNYS", start="1990-01-01", end="2027-12-31")


def test_every_day_from_1990_to_2027_is_that_of_the_exchange(oracle):
    theirs = dict(zip(oracle.opens.dt.to_pydatetime(), oracle.closes.dt.to_pydatetime(), strict=True))
    snowstorm = new_york(1994, 2, 11, 9, 30)  # `holidays` knows of it, the oracle does not
    assert theirs.pop(snowstorm) == new_york(1994, 2, 11, 16)
    ours = [
        (at(opens), at(closes))
        for opens, closes in NYSE.hours(utc(1990, 1, 1).timestamp(), utc(2028, 1, 1).timestamp())
    ]
    assert len(theirs) > 9_000
    assert dict(ours) == theirs | {snowstorm: new_york(1994, 2, 11, 14, 30)}
    assert ours == sorted(ours)


@settings(max_examples=150)
@given(instant=INSTANTS)
def test_open_and_next_open_are_those_of_the_exchange(oracle, instant):
    minute = instant.replace(second=0, microsecond=0)
    assert NYSE.is_open(minute) == oracle.is_open_on_minute(minute, ignore_breaks=True)
    assert NYSE.next_open(minute) == oracle.next_open(minute).to_pydatetime()


CLOSED_OUT_OF_TURN = [date(2012, 10, 29), date(2012, 10, 30), date(2018, 12, 5), date(2025, 1, 9)]


@pytest.mark.parametrize("day", CLOSED_OUT_OF_TURN, ids=str)
def test_storms_and_mourning_close_it_too(day):
    assert NYSE.closing(day) is None
    assert NYSE.session_at(new_york(day.year, day.month, day.day, 12)) == "closed"


@pytest.mark.parametrize(
    "day, closing",
    [
        ((2025, 9, 19), 16),
        ((2026, 11, 27), 13),  # the day after Thanksgiving
        ((2026, 12, 24), 13),
        ((2025, 7, 3), 13),
        ((2026, 3, 6), 16),  # the Friday before clocks go forward, and the Monday after
        ((2026, 3, 9), 16),
        ((2026, 10, 30), 16),  # the Friday before they go back, and the Monday after
        ((2026, 11, 2), 16),
    ],
)
def test_the_sessions_of_a_day_begin_and_end_on_the_second(day, closing):
    edges = [
        (on(day, 4), "closed", "premarket"),
        (on(day, 9, 30), "premarket", "regular"),
        (on(day, closing), "regular", "afterhours"),
        (on(day, closing + 4), "afterhours", "closed"),
    ]
    for edge, before, after in edges:
        assert NYSE.session_at(edge.astimezone(UTC) - timedelta(microseconds=1)) == before
        assert NYSE.session_at(edge.astimezone(UTC)) == after


@pytest.mark.parametrize("day", [(2026, 7, 3), (2026, 7, 4), (2026, 7, 5), (2026, 12, 25), (2026, 11, 26)])
def test_a_holiday_or_a_weekend_has_no_session_at_all(day):
    assert {NYSE.session_at(on(day, hour)) for hour in range(24)} == {"closed"}


def test_the_exchange_opens_at_half_past_nine_whatever_the_clocks_do():
    assert NYSE.next_open(new_york(2026, 3, 6, 12)) == utc(2026, 3, 9, 13, 30)
    assert NYSE.next_open(new_york(2026, 3, 5, 12)) == utc(2026, 3, 6, 14, 30)
    assert NYSE.next_open(new_york(2026, 10, 30, 12)) == utc(2026, 11, 2, 14, 30)


def test_the_next_open_is_strictly_later():
    opening = new_york(2025, 9, 22, 9, 30)
    assert NYSE.next_open(utc(2025, 9, 19, 19)) == opening  # the seed's own Friday
    assert NYSE.next_open(opening - SECOND) == opening
    assert NYSE.next_open(opening) == new_york(2025, 9, 23, 9, 30)
    assert FX.next_open(new_york(2026, 1, 4, 17)) == new_york(2026, 1, 11, 17)
    assert CRYPTO.next_open(utc(2026, 1, 1)) is None


@pytest.mark.parametrize("market", [FX, METALS])
@pytest.mark.parametrize("sunday", [(2026, 3, 8), (2026, 11, 1), (2026, 6, 7), (2025, 12, 28)])
def test_the_week_of_currencies_and_metals_turns_at_five_in_new_york(market, sunday):
    begins = on(sunday, 17)
    friday = begins.date() + timedelta(5)
    ends = new_york(friday.year, friday.month, friday.day, 17)
    assert [market.is_open(begins - SECOND), market.is_open(begins)] == [False, True]
    assert [market.is_open(ends - SECOND), market.is_open(ends)] == [True, False]
    assert market.open_seconds(begins, ends) == 5 * 86_400
    assert market.session_at(ends) == "closed"


def test_crypto_never_closes():
    assert {CRYPTO.session_at(utc(2025, 12, 25) + timedelta(hours=hour)) for hour in range(72)} == {"regular"}
    assert CRYPTO.open_seconds(utc(2019, 12, 30), utc(2025, 1, 3) + SECOND) == 1_831 * 86_400 + 1


def test_a_price_grows_old_only_while_its_market_is_open():
    friday, monday = new_york(2026, 7, 2, 15, 59), new_york(2026, 7, 6, 9, 34)
    assert NYSE.open_seconds(friday, monday) == 60 + 240  # a holiday and a weekend between
    assert NYSE.open_seconds(new_york(2026, 11, 27, 12, 59), new_york(2026, 11, 27, 23)) == 60
    assert NYSE.open_seconds(monday, friday) == 0
    assert NYSE.open_seconds(monday, monday) == 0
    assert CRYPTO.open_seconds(monday, friday) == 0


def test_the_open_hours_of_decades_are_those_of_the_exchange(oracle):
    lengths = (oracle.closes - oracle.opens).loc["2000":].dt.total_seconds()
    assert NYSE.open_seconds(utc(2000, 1, 1), utc(2028, 1, 1)) == lengths.sum()


def test_bars_are_expected_where_the_market_is_open():
    day, next_day = utc(2026, 1, 5), utc(2026, 1, 6)
    assert NYSE.expected_bars(60, day, next_day) == 390
    assert NYSE.expected_bars(3600, day, next_day) == 7  # 14:00 to 20:00: the first has half an hour of it
    assert NYSE.expected_bars(86_400, day, next_day) == 1
    assert NYSE.expected_bars(60, utc(2026, 11, 27), utc(2026, 11, 28)) == 210
    assert NYSE.expected_bars(86_400, utc(2026, 1, 1), utc(2027, 1, 1)) == 251
    assert CRYPTO.expected_bars(60, day, next_day) == 1_440
    assert FX.expected_bars(86_400, utc(2026, 1, 4), utc(2026, 1, 11)) == 6  # part of Sunday is one
    assert FX.expected_bars(7 * 86_400, utc(2026, 1, 1), utc(2026, 2, 1)) == 5  # each shared by two weeks
    assert NYSE.expected_bars(60, next_day, day) == 0


def test_bars_are_counted_by_their_beginning_half_open():
    opening = new_york(2026, 1, 5, 9, 30)
    assert NYSE.expected_bars(60, opening, opening) == 0
    assert NYSE.expected_bars(60, opening, opening + SECOND) == 1
    assert NYSE.expected_bars(60, opening + SECOND, opening + timedelta(minutes=1)) == 0
    assert NYSE.expected_bars(3600, opening, opening + timedelta(hours=1)) == 1  # 15:00 UTC; that of 14:00 began before


@MARKETS
@settings(max_examples=60)
@given(since=INSTANTS, days=st.floats(0, 12), step_s=st.sampled_from([300, 900, 3_600, 14_400, 86_400]))
def test_expected_bars_are_those_counted_one_by_one(market: Market, since, days, step_s):
    until = since + timedelta(days=days)
    starts = range(-(-int(since.timestamp() * 1e6) // (step_s * 10**6)) * step_s, int(until.timestamp()) + 1, step_s)
    inside = [start for start in starts if since.timestamp() <= start < until.timestamp()]
    open_ones = [start for start in inside if list(market.hours(start, start + step_s))]
    assert market.expected_bars(step_s, since, until) == len(open_ones)


@MARKETS
@settings(max_examples=60)
@given(instants=st.lists(INSTANTS, min_size=3, max_size=3))
def test_open_time_adds_up_and_passes_only_when_open(market: Market, instants):
    first, second, third = sorted(instants)
    whole = market.open_seconds(first, third)
    assert whole == pytest.approx(market.open_seconds(first, second) + market.open_seconds(second, third), abs=1e-3)
    assert 0 <= whole <= (third - first).total_seconds() + 1e-6
    passed = market.open_seconds(first, first + SECOND)
    assert passed == 1 if market.is_open(first) and market.is_open(first + SECOND) else passed < 1


@MARKETS
@settings(max_examples=60)
@given(instant=INSTANTS)
def test_it_is_closed_until_just_before_it_next_opens(market: Market, instant):
    following = market.next_open(instant)
    if following is not None:
        assert following > instant
        assert market.is_open(following)
        assert not market.is_open(following - SECOND)
        if not market.is_open(instant):
            assert market.open_seconds(instant, following) == 0


@MARKETS
def test_the_ends_of_time_are_no_error(market: Market):
    for instant in (utc(1, 1, 2), utc(9999, 12, 30)):
        market.session_at(instant)
        market.next_open(instant)
        assert market.open_seconds(instant, instant) == 0


@MARKETS
def test_an_instant_without_an_offset_is_refused(market: Market):
    naive = utc(2026, 1, 5, 15).replace(tzinfo=None)
    for ask in (market.session_at, market.is_open, market.next_open):
        with pytest.raises(ValueError, match="offset from UTC"):
            ask(naive)
    with pytest.raises(ValueError, match="offset from UTC"):
        market.open_seconds(naive, utc(2026, 1, 6))


@pytest.mark.parametrize(
    "symbol, market",
    [
        ("AAPL", NYSE), ("BRK.B", NYSE), ("BTC/USD", CRYPTO), ("ETH/BTC", CRYPTO), ("BTC/EUR", CRYPTO),
        ("EUR/USD", FX), ("USD/SEK", FX), ("EUR/USDT", CRYPTO), ("XAU/USD", METALS), ("XAU/XAG", METALS),
        ("PAXG/USD", CRYPTO),
    ],
)  # fmt: skip
def test_each_symbol_has_its_market(symbol, market):
    assert market_of(symbol) is market
