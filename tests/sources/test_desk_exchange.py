"""A desk brought in and out, on each engine."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantdeck.core.clock import Now
from quantdeck.core.errors import NotInPast, QueryFailed
from quantdeck.core.wire import encode
from quantdeck.sources.sql.desk_exchange import bring_in, take_out
from quantdeck.sources.sql.desk_file import FileProblems, read
from quantdeck.sources.sql.portfolio import Portfolio
from tests.support.desk import LATER, NOON

NOW = Now.of(NOON, fixed=False)
POSITION = {"symbol": "btc-usd", "side": "LONG", "size": 2, "entry_price": 500}
ACCOUNT = {"total_balance": 1000}
MINIMAL = {"accounts": [ACCOUNT], "positions": [POSITION], "risk_limits": [{"max_position_pct": 0.5}]}
WHOLE = {
    "format": "quantdeck desk 1",
    "source": "postgresql",
    "accounts": [
        {
            "account_id": "mine", "currency": "EUR", "total_balance": 1000.5, "available_balance": 0.1,
            "margin_used": 900.0, "peak_balance": 2000.0, "created_at": "2025-01-01T00:00:00Z",
            "updated_at": "2025-06-01T00:00:00.000001Z",
        },
    ],
    "positions": [
        {
            "position_id": "8c1f0f4e-3f0e-4f0a-9d0a-0a1b2c3d4e5f", "account_id": "mine", "symbol": "ETH/EUR",
            "side": "SHORT", "size": 1e-9, "entry_price": 3000.1, "current_price": 2999.9, "realized_pnl": -0.25,
            "opened_at": "2025-02-01T00:00:00Z", "closed_at": "2025-03-01T00:00:00Z",
            "created_at": "2025-02-01T00:00:05Z", "updated_at": "2025-03-01T00:00:01Z",
        },
    ],
    "risk_limits": [
        {
            "account_id": "mine", "strategy_id": "momentum", "max_position_size": 1.0, "max_position_pct": 0.1,
            "max_exposure_pct": 0.2, "max_open_positions": 3, "max_daily_loss": 4.0, "max_daily_loss_pct": 0.5,
            "max_drawdown_pct": 0.6, "allow_short": True, "created_at": "2025-01-01T00:00:00Z",
            "updated_at": "2025-01-01T00:00:00Z",
        },
    ],
}  # fmt: skip


def file(contents):
    return read(json.dumps(contents).encode())


async def bring(desk, contents, **said):
    counts = await bring_in(desk, file(contents), **{"now": NOW, "account": "default", **said})
    return {table: dict(counted) for table, counted in counts.items()}


async def out(desk, **said):
    return json.loads(encode(await take_out(desk, **{"as_of": NOW, "account": None, "source": "postgresql", **said})))


async def test_what_is_brought_in_is_taken_out_as_it_was(desk):
    assert await bring(desk, WHOLE) == {table: {"added": 1} for table in ("accounts", "positions", "risk_limits")}
    assert await out(desk) == WHOLE
    assert await out(desk, account="another") == {**WHOLE, "accounts": [], "positions": [], "risk_limits": []}


@pytest.mark.parametrize("contents", [MINIMAL, WHOLE], ids=["minimal", "whole"])
async def test_the_same_file_twice_changes_nothing(desk, contents):
    await bring(desk, contents)
    before = await out(desk)
    later = await bring(desk, contents, now=Now.of(LATER, fixed=False))
    assert later == {table: {"as they were": 1} for table in ("accounts", "positions", "risk_limits")}
    assert await out(desk) == before
    assert await bring(desk, before) == later


async def test_what_is_left_out_is_filled_in(desk):
    await bring(desk, MINIMAL)
    told = await out(desk)
    noon = "2026-01-15T12:00:00Z"
    times = {"created_at": noon, "updated_at": noon}
    assert told["accounts"] == [
        {
            "account_id": "default", "currency": "USD", "total_balance": 1000.0, "available_balance": 1000.0,
            "margin_used": 0.0, "peak_balance": 1000.0, **times,
        },
    ]  # fmt: skip
    (position,) = told["positions"]
    assert (position["symbol"], position["opened_at"], position["updated_at"]) == ("BTC/USD", noon, noon)
    assert told["risk_limits"] == [{"account_id": "default", "strategy_id": "", "max_position_pct": 0.5, **times}]


@pytest.mark.parametrize(
    "said, free, used",
    [({}, 1000, 0), ({"margin_used": 300}, 700, 300), ({"available_balance": 600}, 600, 400)],
    ids=str,
)
async def test_of_what_is_free_and_what_is_used_the_one_follows_from_the_other(desk, said, free, used):
    await bring(desk, {"accounts": [{**ACCOUNT, **said}]})
    (account,) = (await out(desk))["accounts"]
    assert (account["available_balance"], account["margin_used"]) == (free, used)


async def test_a_change_is_dated_now_and_what_is_the_same_keeps_its_date(desk):
    await bring(desk, MINIMAL)
    changed = {"accounts": [{"total_balance": 900}], "positions": [POSITION]}
    counts = await bring(desk, changed, now=Now.of(LATER, fixed=False))
    assert counts == {"accounts": {"changed": 1}, "positions": {"as they were": 1}}
    told = await out(desk)
    (account,), (position,) = told["accounts"], told["positions"]
    assert (account["updated_at"], account["created_at"]) == ("2026-01-15T12:00:01Z", "2026-01-15T12:00:00Z")
    assert account["peak_balance"] == 1000.0  # the highest that was ever told
    assert position["updated_at"] == "2026-01-15T12:00:00Z"


async def test_a_position_is_found_again_without_an_id_when_its_price_has_moved(desk):
    await bring(desk, MINIMAL)
    moved = {"positions": [{**POSITION, "symbol": "BTC/USD", "current_price": 510}]}
    assert await bring(desk, moved) == {"positions": {"changed": 1}}
    assert len((await out(desk))["positions"]) == 1


async def test_positions_that_are_not_in_the_file_stay_unless_it_is_to_replace_them(desk):
    await bring(desk, MINIMAL)
    await bring(desk, WHOLE)
    other = {"accounts": [ACCOUNT], "positions": [{**POSITION, "symbol": "ETH/USD"}]}
    await bring(desk, other)
    assert len((await out(desk, account="default"))["positions"]) == 2
    assert (await bring(desk, other, replace=True))["positions"] == {"as they were": 1, "removed": 1}
    told = (await out(desk))["positions"]
    assert [position["symbol"] for position in told] == ["ETH/USD", "ETH/EUR"]


async def test_all_of_a_file_is_brought_in_or_nothing(desk):
    await bring(desk, WHOLE)
    before = await out(desk)
    stranger = {**POSITION, "position_id": before["positions"][0]["position_id"]}
    with pytest.raises(FileProblems, match="belongs to the account 'mine'"):
        await bring(desk, {**MINIMAL, "positions": [POSITION, stranger]})
    with pytest.raises(FileProblems, match=r"positions\[1\]\.account_id: there is no account 'nobody'"):
        await bring(desk, {**MINIMAL, "positions": [POSITION, {**POSITION, "account_id": "nobody"}]})
    assert await out(desk) == before


async def test_a_failure_half_way_takes_everything_with_it(desk):
    await desk.execute("DROP TABLE risk_limits")
    with pytest.raises(QueryFailed):
        await bring(desk, MINIMAL)
    assert await desk.rows("SELECT account_id FROM accounts") == []


async def test_brought_in_at_a_fixed_clock_it_is_known_from_then_on_and_not_before(desk):
    await bring(desk, MINIMAL, now=Now.of(NOON, fixed=True))
    portfolio = Portfolio(desk)
    assert await portfolio.balance("default", as_of=Now.of(NOON - timedelta(seconds=1), fixed=True)) is None
    known = await portfolio.balance("default", as_of=Now.of(NOON, fixed=True))
    assert known is not None
    assert known.total == 1000
    await bring(desk, {"accounts": [{"total_balance": 5}]}, now=Now.of(LATER, fixed=False))
    with pytest.raises(NotInPast):
        await portfolio.balance("default", as_of=Now.of(NOON, fixed=True))


async def test_taken_out_at_a_fixed_clock_it_is_what_was_known_then(desk):
    await bring(desk, WHOLE)
    before = await out(desk, as_of=Now.of(NOON, fixed=True))
    await bring(desk, MINIMAL, now=Now.of(LATER, fixed=False))
    assert await out(desk, as_of=Now.of(NOON, fixed=True)) == before == WHOLE
    await bring(desk, {"accounts": [{**ACCOUNT, "account_id": "mine"}]}, now=Now.of(LATER, fixed=False))
    with pytest.raises(NotInPast):
        await out(desk, as_of=Now.of(NOON, fixed=True))


@pytest.mark.parametrize(
    "contents, problem",
    [
        ({}, "nothing in it"),
        ([], "no such file"),
        ({"accounts": [{}]}, "accounts[0].total_balance: is missing"),
        ({"accounts": [{"total_balance": "5"}]}, "accounts[0].total_balance: must be a valid number"),
        ({"accounts": [{"total_balance": True}]}, "accounts[0].total_balance: must be a valid number"),
        ({"accounts": [ACCOUNT, ACCOUNT]}, "accounts[1].account_id: is the same as accounts[0].account_id"),
        ({"accounts": [{**ACCOUNT, "balance": 1}]}, "accounts[0].balance: is no member"),
        ({"accounts": [{**ACCOUNT, "currency": "dollars"}]}, "accounts[0].currency"),
        ({"accounts": [{**ACCOUNT, "account_id": ""}]}, "accounts[0].account_id"),
        ({"accounts": [{**ACCOUNT, "account_id": "a\0b"}]}, "accounts[0].account_id"),
        ({"positions": [POSITION, POSITION]}, "positions[1]: is the same as positions[0]; give each its own"),
        (
            {"accounts": [ACCOUNT, {**ACCOUNT, "account_id": "default"}]},
            "accounts[1].account_id: is the same as accounts[0].account_id",
        ),
        (
            {"positions": [POSITION, {**POSITION, "symbol": "BTC/USD", "account_id": "default"}]},
            "positions[1]: is the same as positions[0]; give each its own position_id",
        ),
        ({"risk_limits": [{}, {"account_id": "default"}]}, "risk_limits[1]: is the same as risk_limits[0]"),
        ({"positions": [{**POSITION, "symbol": "bitcoin"}]}, "positions[0].symbol: is not a trading pair"),
        ({"positions": [{**POSITION, "side": "BUY"}]}, "positions[0].side: must be 'LONG' or 'SHORT'"),
        ({"positions": [{**POSITION, "size": 0}]}, "positions[0].size: must be greater than 0"),
        ({"positions": [{**POSITION, "size": 1e308}]}, "positions[0].size: must be less"),
        ({"positions": [{**POSITION, "opened_at": "2026-01-01"}]}, "positions[0].opened_at: must be a time with its"),
        ({"positions": [{**POSITION, "opened_at": "2026-01-01T00:00:00"}]}, "positions[0].opened_at: must be a time"),
        ({"positions": [{**POSITION, "opened_at": "1969-01-01T00:00:00Z"}]}, "must be between 1970 and 2200"),
        ({"positions": [{**POSITION, "position_id": "7"}]}, "positions[0].position_id: is no UUID"),
        (
            {"positions": [{**POSITION, "opened_at": "2026-01-02T00:00:00Z", "closed_at": "2026-01-01T00:00:00Z"}]},
            "positions[0]: closed_at is before opened_at",
        ),
        ({"risk_limits": [{"max_position_pct": -1}]}, "risk_limits[0].max_position_pct: must be greater than or equal"),
        ({"risk_limits": [{"max_open_positions": 1.5}]}, "risk_limits[0].max_open_positions"),
        ({"format": "quantdeck desk 2", "accounts": [ACCOUNT]}, "format: must be 'quantdeck desk 1'"),
    ],
    ids=str,
)
def test_each_problem_is_told_with_its_path(contents, problem):
    with pytest.raises(FileProblems) as refused:
        file(contents)
    assert problem in str(refused.value)


async def test_a_lot_beside_the_same_lot_as_it_was_taken_out_is_told(desk):
    await bring(desk, MINIMAL)
    (there,) = (await out(desk))["positions"]
    with pytest.raises(FileProblems, match=r"positions\[1\]: is the same as positions\[0\]"):
        file({"positions": [{"position_id": there["position_id"], **POSITION}, {**POSITION, "size": 3}]})


def test_rows_without_an_account_are_told_apart_by_whose_they_are():
    text = json.dumps({"accounts": [ACCOUNT, {**ACCOUNT, "account_id": "default"}]}).encode()
    assert len(read(text, account="mine").accounts) == 2


def test_all_problems_are_told_at_once():
    with pytest.raises(FileProblems) as refused:
        file({"accounts": [{}], "positions": [{"size": 0}], "more": 1})
    assert len(refused.value.problems) == 6


@given(st.binary(max_size=60) | st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists).map(json.dumps))
def test_no_file_is_read_with_anything_but_a_sentence(text):
    with pytest.raises(FileProblems):
        read(text if isinstance(text, bytes) else text.encode())
