"""A run as backtests write them: mostly indicators, orders with what became of them, some bars, a few mistakes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from quantdeck.events import EventLog, Run

RUN = "b3c40a52-6a34-4a8f-9a51-6d3f4e1c7b10"
SYMBOLS = ("AAPL", "MSFT", "NVDA", "AMZN", "META")
PERIODS = (10, 20, 50)
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=1)


def write(path: Path, events: int, *, batch: int = 1000) -> None:
    """55 % indicators, 8 % each of orders and executions, 7 % positions, the rest bars and a little risk."""
    with EventLog.open(path, batch=batch) as log, log.run("BENCH", {"fast": 10}, run_id=RUN, start=BEGAN) as run:
        _tell(run, events)


def _tell(run: Run, events: int) -> None:
    random = Random(7)
    order = trade = None
    for number in range(events):
        at, symbol, which = BEGAN + number * STEP, SYMBOLS[number % len(SYMBOLS)], number % 100
        if which < 55:
            period = PERIODS[which % len(PERIODS)]
            run.indicator(at, symbol, f"SMA_{period}", random.random() * 100, {"Period": period})
        elif which < 79 and which % 3 == 1:
            order, trade = run.order(at, symbol, "Buy", 100, random.random() * 100), None
        elif which < 79 and which % 3 == 2:
            assert order is not None
            price = random.random() * 100 if number % 1000 else None
            trade = run.trade(at, symbol, "Buy", 100, price, order_id=order, commission=1.0, parent=order)
        elif which < 79 and trade is not None and which > 57:
            run.position(at, symbol, 100, 50.5, unrealized_pnl=1.5, realized_pnl=random.random(), parent=trade)
        elif which == 99:
            run.risk(at, "Drawdown", threshold=0.1, current_value=random.random())
        else:
            run.market_data(at, symbol, {"Open": 1.5, "High": 2.5, "Low": 1.25, "Close": 2.0, "Volume": 100})
