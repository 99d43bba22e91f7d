"""What the port `events` promises, of each schema that can be read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from statistics import pstdev
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.core.clock import Now
from quantdeck.domain.event_state import ActiveOrder, Indicator, Pnl, Position
from quantdeck.domain.event_times import micros
from quantdeck.domain.event_types import EVENT_TYPES, Category, Severity
from quantdeck.events import Run
from quantdeck.sources.events import EVER, Slice, Span
from quantdeck.sources.events.embedded import EventFile
from tests.support.desk import LATER, NOON
from tests.support.events import KNOWN, RUN, at, begin, guid
from tests.support.leaks import Reads, assert_sealed
from tests.support.original import as_original

AS_OF = Now.of(NOON, fixed=True)
ALL = Slice(0, 1000)
LATE = guid("late")

READS: Reads = {
    "runs": lambda source, as_of: source.runs(ALL, as_of=as_of),
    "run": lambda source, as_of: source.run(LATE, as_of=as_of),
    "of_type": lambda source, as_of: source.of_type(LATE, "TradeExecution", EVER, ALL, as_of=as_of),
    "of_entity": lambda source, as_of: source.of_entity(LATE, "SecuritySymbol", "AAPL", [], ALL, as_of=as_of),
    "invalid": lambda source, as_of: source.invalid(LATE, None, ALL, as_of=as_of),
    "written": lambda source, as_of: source.written(LATE, 0, 10, as_of=as_of),
    "totals": lambda source, as_of: source.totals(LATE, "TradeExecution", "$.Price", EVER, as_of=as_of),
    "state": lambda source, as_of: source.state(LATE, micros(at(99)), as_of=as_of),
    "chain": lambda source, as_of: source.chain(LATE, guid("root"), [], 10, as_of=as_of),
    "chains": lambda source, as_of: source.chains(LATE, ["TradeExecution"], 10, ALL, as_of=as_of),
}
"""Each read, for the leak test."""


class Log:
    """A log that a test writes with our writer, then reads in one of the two schemas."""

    def __init__(self, folder: Path, schema: str) -> None:
        self.path = folder / "events.db"
        self._folder, self._schema = folder, schema
        self._opened: list[EventFile] = []

    def source(self) -> EventFile:
        path = self.path
        if self._schema == "original":
            path = as_original(self.path, self._folder / f"original{len(self._opened)}.db")
        self._opened.append(EventFile(path))
        return self._opened[-1]

    async def close(self) -> None:
        for opened in self._opened:
            await opened.close()


@pytest.fixture(params=["own", "original"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    opened = Log(tmp_path, request.param)
    yield opened
    await opened.close()


@pytest.fixture
def written(log: Log) -> Callable[..., EventFile]:
    """Write a run, then read."""

    def write(tell: Callable[[Run], Any], **said: Any) -> EventFile:
        with begin(log.path, **said) as run:
            tell(run)
        return log.source()

    return write


def ids(found) -> list[str]:
    return [event.event_id for event in found.events]


async def test_nothing_of_a_run_that_became_known_later_is_in_any_answer(tmp_path):
    with begin(tmp_path / "events.db") as run:
        run.trade(at(1), "AAPL", "Buy", 1, 10)
    source = EventFile(tmp_path / "events.db")

    async def write_later() -> None:
        with begin(tmp_path / "events.db", "late", created_at=LATER) as late:
            late.event("TradeExecution", at(1), {"SecuritySymbol": "AAPL", "Price": 5}, event_id=guid("root"))

    try:
        await assert_sealed(source, READS, write_later, at=NOON, later=LATER)
    finally:
        await source.close()


async def test_a_run_that_ended_after_the_fixed_instant_was_still_open_then(tmp_path):
    with begin(tmp_path / "events.db"):
        pass
    source = EventFile(tmp_path / "events.db")
    try:
        then, since = AS_OF, Now.of(NOON + timedelta(days=9999), fixed=False)
        told = [await source.run(RUN, as_of=as_of) for as_of in (then, since)]
        assert [run and run.status for run in told] == ["open", "complete"]
    finally:
        await source.close()


async def test_lists_runs_with_the_newest_first(log):
    for number, name in enumerate("abc"):
        with begin(log.path, name, created_at=KNOWN + timedelta(minutes=number)) as run:
            for _ in range(number):
                run.risk(at(1), "Drawdown")
    source = log.source()
    found, total = await source.runs(Slice(0, 2), as_of=AS_OF)
    assert ([run.run_id for run in found], total) == ([guid("c"), guid("b")], 3)
    assert [run.events for run in found] == [2, 1]
    assert [run.run_id for run in (await source.runs(Slice(2, 2), as_of=AS_OF))[0]] == [guid("a")]


async def test_gives_events_of_a_type_and_range_in_the_order_of_time(written):
    def tell(run: Run) -> None:
        for hour in (3, 1, 2):
            run.trade(at(hour), "AAPL", "Buy", 1, 10, order_id=guid("o"))
            run.rejection(at(hour), "AAPL", "No margin", order_id=guid("o"))

    source = written(tell)
    found = await source.of_type(RUN, "TradeExecution", EVER, ALL, as_of=AS_OF)
    assert [event.at for event in found.events] == [micros(at(hour)) for hour in (1, 2, 3)]
    span = Span(micros(at(1)), micros(at(2)))
    found = await source.of_type(RUN, "OrderRejection", span, ALL, as_of=AS_OF)
    assert ([event.kind for event in found.events], found.total) == (["OrderRejection"] * 2, 2)


async def test_events_of_one_instant_come_in_the_order_of_writing(written):
    order: list[str] = []

    def tell(run: Run) -> None:
        order.extend(run.risk(at(1), "Drawdown", current_value=9 - number) for number in range(9))

    found = await written(tell).of_type(RUN, "RiskEvent", EVER, ALL, as_of=AS_OF)
    assert ids(found) == order


async def test_combines_type_severity_category_and_range(written):
    def tell(run: Run) -> None:
        told: list[tuple[Severity, Category, int]] = [
            ("Error", "Risk", 1), ("Error", "Risk", 9), ("Info", "Risk", 1), ("Error", "Execution", 1),
        ]  # fmt: skip
        for severity, category, hour in told:
            run.event("RiskEvent", at(hour), {"RiskType": "x"}, severity=severity, category=category)

    source, span = written(tell), Span(micros(at()), micros(at(2)))
    asked: list[dict[str, Any]] = [
        {"severity": "Error", "categories": ["Risk"]}, {"severity": "Error"}, {"categories": ["Risk", "Execution"]}, {},
    ]  # fmt: skip
    founds = [await source.of_type(RUN, "RiskEvent", span, ALL, **said, as_of=AS_OF) for said in asked]
    assert [found.total for found in founds] == [1, 2, 3, 3]
    founds = [await source.of_type(RUN, "RiskEvent", EVER, ALL, **said, as_of=AS_OF) for said in asked]
    assert [found.total for found in founds] == [2, 3, 4, 4]
    assert all(found.total == len(found.events) for found in founds)


async def test_pages_of_ten_over_twenty_five(written):
    source = written(lambda run: [run.risk(at(number), "x") for number in range(25)])
    pages = [await source.of_type(RUN, "RiskEvent", EVER, Slice(10 * n, 10), as_of=AS_OF) for n in range(4)]
    assert [(len(page.events), page.total) for page in pages] == [(10, 25), (10, 25), (5, 25), (0, 25)]
    assert len({event for page in pages for event in ids(page)}) == 25


async def test_runs_are_worlds_of_their_own(log):
    with begin(log.path) as one, begin(log.path, "two") as two:
        root = one.trade(at(1), "AAPL", "Buy", 1, 10, order_id=guid("o"))
        two.position(at(2), "AAPL", 5, 10, parent=root)
        two.pnl(at(2), realized=7)
    source = log.source()
    assert [event.kind for event in (await source.chain(RUN, root, [], 10, as_of=AS_OF)).events] == ["TradeExecution"]
    assert await source.chain(guid("two"), root, [], 10, as_of=AS_OF) is None
    state = await source.state(RUN, micros(at(9)), as_of=AS_OF)
    assert (state.positions, state.pnl) == ([], Pnl(0, 0))
    assert (await source.of_entity(guid("two"), "OrderId", guid("o"), [], ALL, as_of=AS_OF)).total == 0
    chains, total = await source.chains(guid("two"), [], 10, ALL, as_of=AS_OF)
    assert (total, chains[0].events[0].kind) == (1, "PositionUpdate")  # its parent is in another run


@pytest.mark.parametrize(
    "entity, value, total",
    [
        ("OrderId", guid("o"), 2), ("OrderId", "42", 1), ("SecuritySymbol", "aapl", 3), ("SecuritySymbol", "MSFT", 1),
        ("PositionId", "p1", 1), ("IndicatorName", "SMA_10", 1), ("IndicatorName", "sma_10", 0),
        ("SecuritySymbol", "", 0),
        ("OrderId", "' OR 1=1 --", 0), ("OrderId", "%", 0), ("SecuritySymbol", "$.x", 0), ("OrderId", "null", 0),
    ],
)  # fmt: skip
async def test_finds_all_events_of_an_entity(written, entity, value, total):
    def tell(run: Run) -> None:
        run.order(at(1), "AAPL", "Buy", 1, order_id=guid("o"))
        run.trade(at(2), "AAPL", "Buy", 1, 10, order_id=guid("o"))
        run.event("TradeExecution", at(3), {"OrderId": 42, "SecuritySymbol": "MSFT"})
        run.position(at(3), "AAPL", 1, 10, PositionId="p1")
        run.indicator(at(4), "", "SMA_10", 3)
        run.event("StateChange", at(5), {"OrderId": None})

    found = await written(tell).of_entity(RUN, entity, value, [], ALL, as_of=AS_OF)
    assert (found.total, len(found.events)) == (total, total)
    assert [event.at for event in found.events] == sorted(event.at for event in found.events)


async def test_an_entitys_events_can_be_of_some_types_only(written):
    def tell(run: Run) -> None:
        for kind in EVENT_TYPES:
            run.event(kind, at(1), {"SecuritySymbol": "AAPL"})

    source = written(tell)
    found = await source.of_entity(
        RUN, "SecuritySymbol", "AAPL", ["RiskEvent", "TradeExecution"], Slice(0, 1), as_of=AS_OF
    )
    assert ([event.kind for event in found.events], found.total) == (["TradeExecution"], 2)


PRICES = [100, 110, 120, 130, 140]


async def test_sums_up_the_numbers_at_a_path(written):
    def tell(run: Run) -> None:
        for hour, price in enumerate(PRICES):
            run.trade(at(hour), "AAPL", "Buy", 1, price, Deep={"er": price / 10})

    source = written(tell)
    found = await source.totals(RUN, "TradeExecution", "$.Price", EVER, as_of=AS_OF)
    assert found[:6] == (5, 5, 600, 120, 100, 140)
    assert found.deviation == pytest.approx(14.142, abs=1e-3)
    found = await source.totals(RUN, "TradeExecution", "$.Deep.er", EVER, as_of=AS_OF)
    assert (found.mean, found.most) == (12, 14)
    inner = Span(micros(at(1)), micros(at(3)))
    assert (await source.totals(RUN, "TradeExecution", "$.Price", inner, as_of=AS_OF))[:4] == (3, 3, 360, 120)


@pytest.mark.parametrize("path", ["$.Price", "$.Other"])
async def test_only_numbers_and_numerals_are_numbers(written, path):
    values = [1.5, "2.5", " 3 ", "-1e1", True, False, None, "abc", "12abc", "", [1], {"a": 1}, "NaN", "1e999", "0x10"]

    def tell(run: Run) -> None:
        for value in values:
            run.event("TradeExecution", at(1), {"Price": value, "Other": value})

    found = await written(tell).totals(RUN, "TradeExecution", path, EVER, as_of=AS_OF)
    assert found[:6] == (15, 4, -3.0, -0.75, -10, 3)


async def test_no_event_and_no_number_are_no_figure(written):
    source = written(lambda run: run.event("RiskEvent", at(1), {"RiskType": "x"}))
    nothing = (None, None, None, None, None)
    assert await source.totals(RUN, "TradeExecution", "$.Price", EVER, as_of=AS_OF) == (0, 0, *nothing)
    assert await source.totals(RUN, "RiskEvent", "$.CurrentValue", EVER, as_of=AS_OF) == (1, 0, *nothing)
    assert await source.totals(RUN, "RiskEvent", "$.Nothing", EVER, deviation=False, as_of=AS_OF) == (1, 0, *nothing)


numbers = st.lists(
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: value + 1e8) | st.integers(-1000, 1000),
    min_size=1,
    max_size=30,
)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=numbers)
async def test_a_deviation_is_right_also_where_the_mean_is_large(tmp_path, values):
    path = tmp_path / "many.db"
    path.unlink(missing_ok=True)
    with begin(path) as run:
        for value in values:
            run.indicator(at(1), "AAPL", "x", value)
    source = EventFile(path)
    try:
        found = await source.totals(RUN, "IndicatorCalculation", "$.Value", EVER, as_of=AS_OF)
    finally:
        await source.close()
    assert found is not None
    assert found.deviation == pytest.approx(pstdev(values), rel=1e-6, abs=1e-6)
    assert found.mean == pytest.approx(sum(values) / len(values))


async def test_a_position_is_what_was_last_said_of_it(written):
    def tell(run: Run) -> None:
        for hour, quantity in enumerate((100, 150, 200)):
            run.position(at(hour), "AAPL", quantity, 10)

    source = written(tell)
    held = [(await source.state(RUN, micros(at(hour)), as_of=AS_OF)).positions[0].quantity for hour in (0.5, 1.5, 2.5)]
    assert held == [100, 150, 200]


@pytest.mark.parametrize("symbol, many", [(None, 3), ("AAPL", 1), ("aapl", 1), ("UNKNOWN", 0)])
async def test_a_state_can_be_of_one_security(written, symbol, many):
    def tell(run: Run) -> None:
        for place, name in enumerate(("AAPL", "MSFT", "NVDA")):
            run.position(at(1), name, 1, 10, realized_pnl=place + 1)
            run.indicator(at(1), name, "SMA", 5)
            run.order(at(1), name, "Sell", 5, 9)
        run.pnl(at(1), realized=500, unrealized=300)

    state = await written(tell).state(RUN, micros(at(1)), symbol=symbol, as_of=AS_OF)
    assert (len(state.positions), len(state.indicators), len(state.orders)) == (many, many, many)
    assert state.pnl == (Pnl(500, 300) if symbol is None else Pnl(1 if many else 0, 0))
    assert state.pnl_source == ("StateChange" if symbol is None else "PositionUpdate" if many else None)
    assert state.pnl.total == (800 if symbol is None else many)


async def test_without_a_word_on_profit_it_is_the_sum_of_the_positions(written):
    def tell(run: Run) -> None:
        run.position(at(1), "AAPL", 0, 10, realized_pnl=5)
        run.position(at(1), "MSFT", 1, 10, realized_pnl=1, unrealized_pnl=-2)

    state = await written(tell).state(RUN, micros(at(1)), as_of=AS_OF)
    assert (state.pnl, state.pnl_source) == (Pnl(6, -2), "PositionUpdate")
    assert state.positions[0] == Position("AAPL", 0, 10, 0, 5)  # closed, and not forgotten


async def test_an_indicator_is_its_latest_value_by_name_and_security(written):
    def tell(run: Run) -> None:
        for hour, value in ((1, 175.0), (1.5, 176.2), (2, 177.0)):
            run.indicator(at(hour), "AAPL", "SMA_10", value, {"Period": 10})
        run.indicator(at(1), "MSFT", "SMA_10", 4)
        run.indicator(at(1), "AAPL", "SMA_20", 3)
        run.event("StateChange", at(1), {"IndicatorName": "SMA_10", "SecuritySymbol": "AAPL", "StateType": "Indicator"})
        run.event("IndicatorCalculation", at(1), {"IndicatorName": "Breadth", "Value": "0.5"})

    state = await written(tell).state(RUN, micros(at(1.5)), as_of=AS_OF)
    assert state.indicators == [
        Indicator("Breadth", "", 0.5, {}),
        Indicator("SMA_10", "AAPL", 176.2, {"Period": 10}),
        Indicator("SMA_10", "MSFT", 4, {}),
        Indicator("SMA_20", "AAPL", 3, {}),
    ]


async def test_before_the_first_event_there_is_nothing(written):
    source = written(lambda run: run.position(at(5), "AAPL", 1, 1, realized_pnl=3))
    state = await source.state(RUN, micros(at(4)), as_of=AS_OF)
    assert (state.positions, state.indicators, state.orders, state.pnl, state.pnl_source) == (
        [],
        [],
        [],
        Pnl(0, 0),
        None,
    )


async def test_parts_of_a_state_can_be_left_out(written):
    def tell(run: Run) -> None:
        run.indicator(at(1), "AAPL", "SMA", 5)
        run.order(at(1), "AAPL", "Sell", 5, 9)

    state = await written(tell).state(RUN, micros(at(1)), indicators=False, orders=False, as_of=AS_OF)
    assert (state.indicators, state.orders) == ([], [])


async def test_of_two_orders_one_was_executed(written):
    def tell(run: Run) -> None:
        for name in ("one", "two"):
            run.order(at(1), "AAPL", "Buy", 100, 9.5, order_id=guid(name))
        run.trade(at(2), "AAPL", "Buy", 100, 9.5, order_id=guid("one"))
        run.trade(at(2), "AAPL", "Buy", 100, 9.5)  # of nobody's order: it must not hide the others

    source = written(tell)
    before, after = [(await source.state(RUN, micros(at(hour)), as_of=AS_OF)).orders for hour in (1, 2)]
    assert [order.order_id for order in before] == [guid("one"), guid("two")]
    assert after == [ActiveOrder(guid("two"), "AAPL", "Buy", 100, 9.5)]


@pytest.mark.parametrize("status", ["Filled", "Cancelled", "Canceled", "Rejected", "Expired"])
async def test_an_order_that_ended_is_not_active(written, status):
    def tell(run: Run) -> None:
        run.order(at(1), "AAPL", "Buy", 100, order_id=guid("one"))
        run.order_ended(at(2), guid("one"), status)

    assert (await written(tell).state(RUN, micros(at(2)), as_of=AS_OF)).orders == []


async def test_a_rejected_order_is_not_active_and_one_executed_in_part_has_the_rest(written):
    def tell(run: Run) -> None:
        run.order(at(1), "AAPL", "Buy", 100, order_id=guid("one"))
        run.rejection(at(1), "AAPL", "No margin", order_id=guid("one"))
        run.order(at(1), "AAPL", "Sell", "0.3", order_id=guid("two"))
        run.trade(at(2), "AAPL", "Sell", "0.1", 5, order_id=guid("two"))
        run.trade(at(3), "AAPL", "Sell", 0.2, 5, order_id=guid("two"))

    source = written(tell)
    (part,) = (await source.state(RUN, micros(at(2)), as_of=AS_OF)).orders
    assert (part.order_id, part.remaining) == (guid("two"), 0.2)
    assert (await source.state(RUN, micros(at(3)), as_of=AS_OF)).orders == []


PATTERN = ["TradeExecution", "PositionUpdate"]


async def test_a_chain_is_an_event_with_all_that_came_of_it(written):
    told: dict[str, str] = {}

    def tell(run: Run) -> None:
        told["root"] = run.trade(at(1), "AAPL", "Buy", 1, 1)
        told["child"] = run.position(at(3), "AAPL", 1, 1, parent=told["root"])
        told["second"] = run.position(at(2), "AAPL", 1, 1, parent=told["root"])
        told["grandchild"] = run.pnl(at(4), realized=1, parent=told["child"])

    source = written(tell)
    chain = await source.chain(RUN, told["root"], [], 10, as_of=AS_OF)
    assert ids(chain) == [told[name] for name in ("root", "second", "child", "grandchild")]
    assert (chain.root, chain.missing) == (told["root"], [])
    assert ids(await source.chain(RUN, told["child"], [], 10, as_of=AS_OF)) == [told["child"], told["grandchild"]]
    assert await source.chain(RUN, guid("nobody"), [], 10, as_of=AS_OF) is None


async def test_a_chain_that_was_written_child_first_is_in_the_order_of_time(written):
    def tell(run: Run) -> None:
        run.event("PositionUpdate", at(2), {"SecuritySymbol": "A"}, parent=guid("root"), event_id=guid("child"))
        run.event("TradeExecution", at(1), {"SecuritySymbol": "A"}, event_id=guid("root"))

    source = written(tell)
    assert ids(await source.chain(RUN, guid("root"), PATTERN, 10, as_of=AS_OF)) == [guid("root"), guid("child")]
    (chain,), total = await source.chains(RUN, PATTERN, 10, ALL, as_of=AS_OF)
    assert (ids(chain), total) == ([guid("root"), guid("child")], 1)


@pytest.mark.parametrize("depth, many", [(1, 1), (5, 5), (50, 50)])
async def test_a_hundred_generations_are_followed_as_far_as_asked(written, depth, many):
    def tell(run: Run) -> None:
        last = None
        for number in range(100):
            last = run.event("StateChange", at(number), {}, parent=last, event_id=guid(f"{number}"))

    source = written(tell)
    assert len((await source.chain(RUN, guid("0"), [], depth, as_of=AS_OF)).events) == many
    (chain,), total = await source.chains(RUN, [], depth, ALL, as_of=AS_OF)
    assert (len(chain.events), total) == (many, 1)


async def test_circles_end_and_orphans_are_roots(written):
    def tell(run: Run) -> None:
        run.event("StateChange", at(1), {}, event_id=guid("a"), parent=guid("b"))
        run.event("StateChange", at(2), {}, event_id=guid("b"), parent=guid("a"))
        run.event("StateChange", at(3), {}, event_id=guid("c"), parent=guid("gone"))

    source = written(tell)
    assert ids(await source.chain(RUN, guid("a"), [], 50, as_of=AS_OF)) == [guid("a"), guid("b")]
    for pattern in ([], ["StateChange"]):
        found, total = await source.chains(RUN, pattern, 50, ALL, as_of=AS_OF)
        assert ([chain.root for chain in found], total) == ([guid("c")], 1)


async def test_with_a_pattern_chains_are_complete_or_not(written):
    def tell(run: Run) -> None:
        whole = run.event("TradeExecution", at(1), {}, event_id=guid("whole"))
        run.position(at(2), "AAPL", 1, 1, parent=whole)
        run.event("TradeExecution", at(3), {}, event_id=guid("lonely"))
        other = run.event("TradeExecution", at(4), {}, event_id=guid("other"))
        run.pnl(at(5), realized=1, parent=other)
        run.position(at(6), "MSFT", 1, 1)

    source = written(tell)
    whole, total = await source.chains(RUN, PATTERN, 10, ALL, as_of=AS_OF)
    assert ([(chain.root, chain.missing) for chain in whole], total) == ([(guid("whole"), [])], 1)
    broken, total = await source.chains(RUN, PATTERN, 10, ALL, incomplete=True, as_of=AS_OF)
    lacking = ["PositionUpdate"]
    assert [(chain.root, chain.missing) for chain in broken] == [(guid("lonely"), lacking), (guid("other"), lacking)]
    assert total == 2
    assert (await source.chains(RUN, PATTERN, 1, ALL, incomplete=True, as_of=AS_OF))[1] == 3  # roots alone
    assert (await source.chain(RUN, guid("other"), PATTERN, 10, as_of=AS_OF)).missing == lacking
    both, total = await source.chains(RUN, [], 10, ALL, as_of=AS_OF)
    assert ([chain.root for chain in both], total) == ([guid("whole"), guid("other")], 2)


async def test_an_order_that_was_placed_is_a_word_of_patterns(written):
    def tell(run: Run) -> None:
        for name in ("filled", "left"):
            run.event(
                "StateChange", at(1), {"OrderId": guid(name), "OrderStatus": "Placed"}, event_id=guid(f"{name} placed")
            )
        run.trade(at(2), "AAPL", "Buy", 1, 1, order_id=guid("filled"), parent=guid("filled placed"))
        run.pnl(at(3), realized=1)

    source = written(tell)
    broken, total = await source.chains(RUN, ["OrderPlaced", "TradeExecution"], 10, ALL, incomplete=True, as_of=AS_OF)
    assert ([(chain.root, chain.missing) for chain in broken], total) == (
        [(guid("left placed"), ["TradeExecution"])],
        1,
    )
    assert (await source.chains(RUN, ["OrderPlaced", "TradeExecution"], 10, ALL, as_of=AS_OF))[1] == 1


async def test_ten_chains_in_pages_of_three(written):
    def tell(run: Run) -> None:
        for number in range(10):
            root = run.event("TradeExecution", at(number), {}, event_id=guid(f"{number}"))
            run.position(at(number), "AAPL", 1, 1, parent=root)

    source = written(tell)
    pages = [await source.chains(RUN, PATTERN, 10, Slice(3 * n, 3), as_of=AS_OF) for n in range(5)]
    assert [(len(found), total) for found, total in pages] == [(3, 10), (3, 10), (3, 10), (1, 10), (0, 10)]
    assert [chain.root for found, _ in pages for chain in found] == [guid(f"{number}") for number in range(10)]


async def test_finds_malformed_events_by_the_worst_that_is_said_of_them(written):
    def tell(run: Run) -> None:
        run.trade(at(1), "AAPL", "Buy", 1, 1, order_id=guid("fine"))
        run.event("TradeExecution", at(2), {"OrderId": "invalid-guid", "SecuritySymbol": "AAPL", "Quantity": 100})
        run.event("TradeExecution", at(3), {"OrderId": guid("o"), "Quantity": 100})

    source = written(tell)
    totals = [(await source.invalid(RUN, severity, ALL, as_of=AS_OF)).total for severity in (None, "Error", "Warning")]
    assert totals == [2, 1, 2]
    (worst,) = (await source.invalid(RUN, "Error", ALL, as_of=AS_OF)).events
    assert worst.errors == (
        '[{"Field":"Properties.OrderId","Error":"Invalid GUID format","Severity":"Error"},'
        '{"Field":"Properties.Price","Error":"Missing required field","Severity":"Warning"}]'
    )


async def test_what_is_not_there_is_none_or_nothing(written):
    source = written(str)
    assert await source.run(guid("other"), as_of=AS_OF) is None
    assert await source.of_type(guid("other"), "RiskEvent", EVER, ALL, as_of=AS_OF) is None
    assert await source.of_type(RUN, "RiskEvent", EVER, ALL, as_of=AS_OF) == ([], 0)
    assert await source.chains(RUN, [], 10, ALL, as_of=AS_OF) == ([], 0)
