"""What accounts hold, have and may risk, as each engine tells it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.core.clock import Now, iso
from quantdeck.core.errors import NotInPast, QueryFailed
from quantdeck.core.wire import encode
from quantdeck.domain.risk import Limits
from quantdeck.settings import Risk
from quantdeck.sources.sql.portfolio import Book, Portfolio
from tests.support.desk import (
    LATER,
    LONG_AGO,
    NOON,
    add_account,
    add_implementation,
    add_limits,
    add_position,
    add_signal,
    add_spec,
)
from tests.support.leaks import Reads, assert_sealed

AS_OF = Now.of(NOON, fixed=True)
HOUR = timedelta(hours=1)

READS: Reads = {
    "positions": lambda source, as_of: source.positions("default", None, offset=0, limit=10, as_of=as_of),
    "balance": lambda source, as_of: source.balance("default", as_of=as_of),
    "book": lambda source, as_of: source.book("default", "BTC/USD", as_of=as_of),
}
"""Each read, for the leak test."""


@pytest.fixture
async def portfolio(desk) -> Portfolio:
    await add_account(desk)
    return Portfolio(desk)


def running(instant: datetime = NOON) -> Now:
    return Now.of(instant, fixed=False)


async def book_of(portfolio: Portfolio, account: str = "default") -> Book:
    book = await portfolio.book(account, "BTC/USD", as_of=AS_OF)
    assert book is not None
    return book


async def held(portfolio, symbol=None, offset=0, limit=10, as_of=AS_OF, account="default"):
    found, total = await portfolio.positions(account, symbol, offset=offset, limit=limit, as_of=as_of)
    return [position.holding.symbol for position in found], total


async def test_open_positions_are_told_newest_first(desk, portfolio):
    for age, symbol in enumerate(("BTC/USD", "ETH/USD", "EUR/USD"), start=1):
        await add_position(desk, symbol, symbol, opened_at=NOON - age * HOUR)
    assert await held(portfolio) == (["BTC/USD", "ETH/USD", "EUR/USD"], 3)
    assert await held(portfolio, "ETH/USD") == (["ETH/USD"], 1)
    assert await held(portfolio, "XAU/USD") == ([], 0)


async def test_another_accounts_positions_and_closed_ones_are_not_held(desk, portfolio):
    await add_position(desk, "closed", closed_at=NOON)
    await add_position(desk, "theirs", account_id="another")
    await add_position(desk, "closes later", "ETH/USD", closed_at=LATER)
    assert await held(portfolio) == (["ETH/USD"], 1)
    assert await held(portfolio, account="another") == (["BTC/USD"], 1)
    assert await held(portfolio, account="nobody") == ([], 0)


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 9), symbol=st.sampled_from([None, "BTC/USD"]))
async def test_pages_put_together_are_the_whole_with_each_position_once(many, portfolio, limit, symbol):
    whole, total = await portfolio.positions("default", symbol, offset=0, limit=100, as_of=AS_OF)
    pages = [
        await portfolio.positions("default", symbol, offset=offset, limit=limit, as_of=AS_OF)
        for offset in range(0, total, limit)
    ]
    assert [found for page, _ in pages for found in page] == whole
    assert {count for _, count in pages} == {total} == {len(whole)}
    assert len({found.holding.size for found in whole}) == total == (many if symbol is None else many // 2)


@pytest.fixture
async def many(desk) -> int:
    """Positions of few instants, each of a size of its own."""
    for number in range(22):
        symbol = ("BTC/USD", "ETH/USD")[number % 2]
        await add_position(desk, f"{number}", symbol, size=number + 1.0, opened_at=NOON - (number // 8) * HOUR)
    return 22


async def test_a_page_past_the_end_is_empty_with_the_true_total(many, portfolio):
    assert await held(portfolio, offset=1000) == ([], many)


async def test_nothing_that_became_known_later_is_in_any_answer(desk, portfolio):
    await add_position(desk, "known")
    impl = await add_implementation(desk, "one", await add_spec(desk))
    await add_signal(desk, "known", impl, price=400.0)

    async def write_later() -> None:
        await add_position(
            desk, "opened later", opened_at=LATER, created_at=LATER, updated_at=LATER, current_price=600.0
        )
        await add_position(desk, "recorded later", created_at=LATER, updated_at=LATER, size=9.0)
        await add_position(desk, "entered ahead", opened_at=LATER)
        await add_account(desk, "another", created_at=LATER, updated_at=LATER)
        await add_limits(desk, max_position_size=1.0, created_at=LATER, updated_at=LATER)
        await add_signal(desk, "saved later", impl, price=900.0, created_at=LATER)
        await add_signal(desk, "triggered later", impl, price=900.0, signal_timestamp=LATER)

    await assert_sealed(portfolio, READS, write_later, at=NOON, later=LATER)
    assert await portfolio.balance("another", as_of=AS_OF) is None


@pytest.mark.parametrize("changed", ["accounts", "positions", "risk_limits", "closed"])
async def test_what_was_changed_after_the_fixed_clock_is_refused_not_shown(desk, portfolio, changed):
    await add_position(desk, "held")
    await add_limits(desk)
    if changed == "closed":
        await desk.execute("UPDATE positions SET closed_at = :at, updated_at = :at", at=LATER)
    else:
        await desk.execute(f"UPDATE {changed} SET updated_at = :at", at=LATER)
    for name, read in READS.items():
        with pytest.raises(NotInPast, match="after the fixed clock") as refused:
            await read(portfolio, AS_OF)
        assert iso(LATER) in str(refused.value.__cause__), name
        assert iso(LATER) not in refused.value.message + encode(refused.value.details).decode()
        await read(portfolio, running())  # while the clock runs it is simply the present


async def test_a_balance_is_as_stored_and_its_gain_of_all_that_is_open(desk, portfolio):
    assert (await portfolio.balance("default", as_of=AS_OF)).unrealized_pnl == 0
    await add_position(desk, "long", size=2.0, entry_price=500.0, current_price=560.0)
    await add_position(desk, "short", "ETH/USD", side="SHORT", size=10.0, entry_price=50.0, current_price=52.0)
    await add_position(desk, "closed", current_price=900.0, closed_at=NOON)
    found = await portfolio.balance("default", as_of=AS_OF)
    assert (found.total, found.available, found.margin_used, found.unrealized_pnl) == (100e3, 80e3, 20e3, 100.0)


@pytest.mark.parametrize("odd", [{"current_price": None}, {"symbol": "ETH/BTC", "current_price": 510.0}], ids=str)
async def test_a_gain_of_which_a_part_is_not_known_is_not_known(desk, portfolio, odd):
    await add_position(desk, "known", current_price=560.0)
    await add_position(desk, "odd", **odd)
    assert (await portfolio.balance("default", as_of=AS_OF)).unrealized_pnl is None


async def test_nobodys_account_is_none_and_no_zeros(portfolio):
    assert await portfolio.balance("nobody", as_of=AS_OF) is None
    assert await portfolio.book("nobody", "BTC/USD", as_of=AS_OF) is None


async def test_stored_limits_count_whole_and_those_of_the_settings_where_there_are_none(desk, portfolio):
    assert (await book_of(portfolio)).limits == Limits(**Risk().model_dump())
    await add_limits(desk, max_position_pct=0.25, max_open_positions=3)
    await add_limits(desk, strategy_id="momentum", max_position_pct=0.01)
    book = await book_of(portfolio)
    assert book.limits == Limits(max_position_pct=0.25, max_open_positions=3, allow_short=False)
    said = Portfolio(desk, risk=Risk(max_exposure_pct=0.9, allow_short=True))
    await add_account(desk, "another")
    assert (await book_of(said, "another")).limits.max_exposure_pct == 0.9


async def test_a_book_has_what_is_open_and_what_the_day_brought(desk, portfolio):
    await add_position(desk, "old", size=1.0)
    await add_position(desk, "of today", "ETH/USD", size=10.0, entry_price=50.0, current_price=45.0, opened_at=NOON)
    await add_position(desk, "closed today", closed_at=NOON - HOUR, realized_pnl=-30.0)
    await add_position(desk, "closed yesterday", closed_at=NOON - 13 * HOUR, realized_pnl=-1000.0)
    account = (await book_of(portfolio)).account
    assert sorted(one.symbol for one in account.holdings) == ["BTC/USD", "ETH/USD"]
    assert (account.equity, account.available, account.peak, account.lost_today) == (100e3, 80e3, 100e3, 80.0)


async def test_an_account_of_no_known_peak_is_at_it(desk):
    await add_account(desk, peak_balance=None)
    assert (await book_of(Portfolio(desk))).account.peak == 100e3


async def test_a_price_is_that_of_the_position_marked_last_and_else_that_of_the_last_signal_of_a_day(desk, portfolio):
    async def prices() -> list[float]:
        return [price for price, _ in (await book_of(portfolio)).prices]

    assert await prices() == []
    impl = await add_implementation(desk, "one", await add_spec(desk))
    await add_signal(desk, "old", impl, price=1.0, signal_timestamp=NOON - 25 * HOUR)
    assert await prices() == []
    await add_signal(desk, "new", impl, price=420.0)
    await add_signal(desk, "unpriced", impl, signal_timestamp=NOON)
    await add_signal(desk, "made up", impl, price=7.0, signal_type="backtest", signal_timestamp=NOON)
    await add_signal(desk, "elsewhere", impl, price=9.0, symbol="ETH/USD", signal_timestamp=NOON)
    assert await prices() == [420.0]
    await add_position(desk, "marked", current_price=510.0, updated_at=LONG_AGO + HOUR)
    await add_position(desk, "marked before", current_price=505.0)
    await add_position(desk, "unmarked", current_price=None, updated_at=NOON)
    await add_position(desk, "closed", current_price=1.0, closed_at=NOON, updated_at=NOON)
    assert await prices() == [510.0, 420.0]


@pytest.mark.parametrize("stored", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("column", ["accounts.total_balance", "positions.size", "positions.current_price"])
async def test_no_figure_can_be_stored_that_is_no_number(desk, portfolio, column, stored):
    await add_position(desk, "one")
    table, _, name = column.partition(".")
    past = {"NaN": "'NaN'", "Infinity": "9e999", "-Infinity": "-9e999"}[stored]  # past the seam
    value = past if desk.source == "sqlite" else f"'{stored}'"
    with pytest.raises(QueryFailed):
        await desk.execute(f"UPDATE {table} SET {name} = {value}")


@pytest.mark.parametrize("fixed", [True, False])
async def test_a_concurrent_writer_cannot_tear_what_is_read(desk, portfolio, fixed):
    """Each write moves money between the account and a position; each read must find all of it."""
    await add_position(desk, "held", size=1.0, entry_price=1.0, current_price=1.0)
    as_of, done = Now.of(NOON, fixed=fixed), asyncio.Event()

    async def write() -> None:
        for number in range(60):
            size = 1.0 + number
            async with desk.transaction():
                await desk.execute("UPDATE accounts SET available_balance = :left", left=100_000.0 - size)
                await desk.execute("UPDATE positions SET size = :size", size=size)
        done.set()

    async def read() -> int:
        seen = set[float]()
        while not done.is_set():
            book = await portfolio.book("default", "BTC/USD", as_of=as_of)
            assert book is not None
            account, (holding,) = book.account, book.account.holdings
            if seen:  # the first may come before the first write
                assert account.available + holding.size == 100_000.0
            elif account.available + holding.size != 100_000.0:
                continue
            seen.add(holding.size)
        return len(seen)

    async with asyncio.TaskGroup() as both:
        both.create_task(write())
        readers = [both.create_task(read()) for _ in range(2)]
    assert all(reader.result() for reader in readers)


async def test_the_present_is_asked_without_a_word_about_the_past(desk, portfolio):
    skewed = datetime.now(UTC) + timedelta(minutes=1)
    await add_position(desk, "held", updated_at=skewed)
    assert (await held(portfolio, as_of=running(datetime.now(UTC))))[1] == 1
