"""get_implementations, through a client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.desk import LATER, add_implementation, add_spec, uid


@pytest.fixture
async def own(specs):
    return await add_spec(specs.desk)


async def test_answers_what_is_validated_in_the_specs_shape(specs, own):
    impl = await add_implementation(specs.desk, "a", own, forward_sharpe=0.5, forward_accuracy=0.0, backtest_sharpe=3)
    await add_implementation(specs.desk, "b", own, status="CANDIDATE")
    body = await specs("get_implementations", spec_id=own)
    item = {
        "impl_id": impl, "parameters": {"period": 14}, "symbol": "BTC/USD", "forward_sharpe": 0.5,
        "forward_accuracy": 0.0, "status": "VALIDATED",
    }  # fmt: skip
    assert body["data"] == {
        "items": [item],
        "pagination": {"offset": 0, "limit": 10, "total": 1, "has_more": False},
    }
    assert body["_metadata"]["source"] == specs.desk.source


async def test_what_was_only_backtested_has_no_forward_figures(specs, own):
    await add_implementation(specs.desk, "a", own, backtest_sharpe=3.0, backtest_accuracy=0.9)
    (item,) = (await specs("get_implementations", spec_id=own))["data"]["items"]
    assert (item["forward_sharpe"], item["forward_accuracy"]) == (None, None)


async def test_a_status_is_a_filter_and_all_is_none(specs, own):
    every = ("CANDIDATE", "VALIDATED", "DEPLOYED", "RETIRED")
    for status in every:
        await add_implementation(specs.desk, status, own, status=status)

    async def found(status):
        return {
            one["status"] for one in (await specs("get_implementations", spec_id=own, status=status))["data"]["items"]
        }

    assert [await found(status) for status in every] == [{status} for status in every]
    assert await found("ALL") == set(every)


async def test_a_spec_without_implementations_has_an_empty_list(specs, own):
    assert (await specs("get_implementations", spec_id=own.upper()))["data"]["pagination"]["total"] == 0


async def test_an_unknown_spec_is_not_found_whatever_its_id_looks_like(specs, own):
    for nobody in ("", "42", uid("nobody"), "' OR 1=1 --"):
        code, message = await specs.refused("get_implementations", spec_id=nobody)
        assert (code, "not found" in message) == ("SPEC_NOT_FOUND", True)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"status": "validated"}, "INVALID_STATUS"),
    ({"status": "STALE"}, "INVALID_STATUS"),
    ({"status": 7}, "INVALID_STATUS"),
    ({"limit": -1}, "INVALID_PARAMETER"),
    ({"offset": 1.5}, "INVALID_PARAMETER"),
    ({"spec_id": 7}, "INVALID_PARAMETER"),
    ({"spec_id": None}, "INVALID_PARAMETER"),
]


async def test_fails_with_a_declared_code(specs, own):
    for arguments, code in REFUSED:
        assert (await specs.refused("get_implementations", **{"spec_id": own, **arguments}))[0] == code, arguments


async def test_pages_are_cut_at_a_hundred_and_have_each_one_once(specs, own):
    ids = {await add_implementation(specs.desk, f"{n}", own, forward_sharpe=n % 2) for n in range(7)}
    pages = [(await specs("get_implementations", spec_id=own, limit=3, offset=n))["data"] for n in (0, 3, 6)]
    listed = [item["impl_id"] for page in pages for item in page["items"]]
    assert (len(listed), set(listed)) == (7, ids)
    assert [page["pagination"]["has_more"] for page in pages] == [True, True, False]
    assert (await specs("get_implementations", spec_id=own, limit=10**9))["data"]["pagination"]["limit"] == 100


async def test_a_table_that_is_gone_is_a_database_error(specs, own):
    await specs.desk.execute("ALTER TABLE strategy_implementations RENAME TO gone")
    assert (await specs.refused("get_implementations", spec_id=own))[0] == "DATABASE_ERROR"


async def test_a_list_changed_after_the_fixed_clock_is_refused(specs, own):
    await add_implementation(specs.desk, "a", own, updated_at=LATER)
    code, message = await specs.refused("get_implementations", spec_id=own)
    assert (code, "after the fixed clock" in message) == ("NOT_FOUND", True)


async def test_what_is_of_after_the_clock_is_invisible(specs, own):
    late = await add_spec(specs.desk, "LATE", created_at=LATER, updated_at=LATER)
    await add_implementation(specs.desk, "a", own, created_at=LATER, updated_at=LATER)
    assert (await specs("get_implementations", spec_id=own))["data"]["items"] == []
    assert (await specs.refused("get_implementations", spec_id=late))[0] == "SPEC_NOT_FOUND"
