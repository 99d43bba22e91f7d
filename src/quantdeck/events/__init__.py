"""Write a log of backtest events, which the server backtest-events answers from.

    from quantdeck.events import EventLog

    with EventLog.open("events.db") as log, log.run("SMA_CROSS", {"fast": 10, "slow": 30}) as run:
        order = run.order(at, "EUR/USD", "Buy", 100, 1.0842)
        trade = run.trade(at, "EUR/USD", "Buy", 100, 1.0843, order_id=order, parent=order)
        run.position(at, "EUR/USD", quantity=100, average_price=1.0843, parent=trade)

A log is one SQLite file for many runs. Any number of programs may write and read it at once. The rest is told in
docs/how-to/write-events.md.
"""

from quantdeck.events.file import EventLogError
from quantdeck.events.log import EventLog
from quantdeck.events.run import Run

__all__ = ["EventLog", "EventLogError", "Run"]
