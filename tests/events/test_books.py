"""Checkpoints of open orders: a state is the same with them and without, whatever order events were written in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantdeck.core.clock import Now
from quantdeck.domain.event_times import micros
from quantdeck.events import EventLog
from quantdeck.events.books import Books
from quantdeck.sources.events.embedded import EventFile
from tests.support.desk import NOON
from tests.support.events import KNOWN, RUN, at, guid

AS_OF = Now.of(NOON, fixed=True)
KINDS = ("placed", "half", "filled", "rejected", "cancelled")
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 4), st.integers(0, 20)), min_size=5, max_size=60)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_a_state_is_the_same_with_and_without_checkpoints(tmp_path, steps):
    path = tmp_path / "events.db"
    for file in tmp_path.glob("events.db*"):
        file.unlink()
    with EventLog.open(path, batch=7) as log, log.run(run_id=RUN, created_at=KNOWN) as run:
        log._books = Books(every=4)
        for kind, order, hour in steps:
            if kind == "placed":
                run.order(at(hour), "AAPL", "Buy", 2, order_id=guid(f"{order}"))
            elif kind == "rejected":
                run.rejection(at(hour), "AAPL", "x", order_id=guid(f"{order}"))
            elif kind == "cancelled":
                run.order_ended(at(hour), guid(f"{order}"), "Cancelled")
            else:
                run.trade(at(hour), "AAPL", "Buy", 1 if kind == "half" else 2, 1, order_id=guid(f"{order}"))
    hours = sorted({hour for _, _, hour in steps})
    with_books = await states(path, hours)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM order_books")
    assert await states(path, hours) == with_books


async def states(path, hours):
    source = EventFile(path)
    try:
        found = [await source.state(RUN, micros(at(hour)), as_of=AS_OF) for hour in hours]
    finally:
        await source.close()
    return [{order.order_id: order for order in state.orders} for state in found if state is not None]


def test_checkpoints_are_made_where_there_are_many_orders(tmp_path):
    with EventLog.open(tmp_path / "events.db") as log, log.run() as run:
        random = Random(1)
        for number in range(6000):
            order = run.order(at(number), "AAPL", "Buy", 1)
            if random.random() < 0.999:
                run.order_ended(at(number), order, "Filled")
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        (made, largest) = connection.execute("SELECT count(*), max(length(orders)) FROM order_books").fetchone()
    assert 6 <= made <= 12
    assert largest < 4000
