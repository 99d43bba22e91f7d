"""list_backtest_runs, through a client."""

from __future__ import annotations

from quantdeck.core.call import Caller
from tests.support.events import at, guid


async def test_lists_runs_newest_first_with_what_tells_them_apart(events, run):
    with run("old", created_at="2026-01-01T00:00:00Z", strategy="SMA_CROSS", parameters={"slow": 30, "fast": 10}):
        pass
    with run("new", strategy="SMA_CROSS", parameters={"fast": 12, "slow": 30}, start=None, end=None) as new:
        new.risk(at(1), "Drawdown")
        new.risk(at(3), "Drawdown")
    body = await events("list_backtest_runs")
    new, old = body["runs"]
    assert (new["id"], old["id"], body["totalCount"]) == (guid("new"), guid("old"), 2)
    assert old["parameters"] == {"fast": 10, "slow": 30}
    assert new["strategyConfigHash"] != old["strategyConfigHash"]
    assert (len(new["strategyConfigHash"]), old["createdAt"]) == (64, "2026-01-01T00:00:00.000Z")
    assert (new["startTime"], new["endTime"]) == ("2025-01-01T01:00:00.000Z", "2025-01-01T03:00:00.000Z")
    assert (new["eventCount"], old["eventCount"]) == (2, 0)


async def test_equal_strategies_with_equal_parameters_have_equal_hashes(events, run):
    for name, parameters in (("a", {"x": 1, "y": 2}), ("b", {"y": 2, "x": 1})):
        with run(name, strategy="S", parameters=parameters):
            pass
    one, two = (await events("list_backtest_runs"))["runs"]
    assert one["strategyConfigHash"] == two["strategyConfigHash"]


async def test_a_run_says_how_it_ended(serve, path, run):
    import contextlib

    with run("complete"):
        pass
    with contextlib.suppress(ZeroDivisionError), run("failed") as failing:
        failing.risk(at(1), "x")
        raise ZeroDivisionError
    with run("open"):
        events = await serve("backtest-events")
        # They ended after the fixed clock of these tests, so as of it all are open; the wall clock sees the ends.
        assert {one["status"] for one in (await events("list_backtest_runs"))["runs"]} == {"open"}
        events.app.runtime.clock = type(events.app.runtime.clock).parse("wall")
        told = {one["id"]: one["status"] for one in (await events("list_backtest_runs"))["runs"]}
    assert told == {guid(name): name for name in ("complete", "failed", "open")}


async def test_runs_come_in_pages(events, run):
    for name in "abc":
        with run(name):
            pass
    pages = [await events("list_backtest_runs", pageSize=2, pageIndex=n) for n in range(3)]
    assert [(len(page["runs"]), page["metadata"]["hasMore"], page["totalCount"]) for page in pages] == [
        (2, True, 3), (1, False, 3), (0, False, 3),
    ]  # fmt: skip


async def test_a_token_for_one_run_is_told_of_no_other(events, run):
    for name in ("mine", "theirs"):
        with run(name):
            pass
    bearer = Caller("bearer", frozenset({"read", f"run:{guid('mine')}", f"run:{guid('nobody')}"}))
    app = events.app
    answer = await app.call(app.tool("list_backtest_runs"), {}, caller=bearer)
    assert (guid("mine") in answer.encoded.decode(), guid("theirs") in answer.encoded.decode()) == (True, False)
    assert answer.body["totalCount"] if isinstance(answer.body, dict) else answer.body.totalCount == 1
