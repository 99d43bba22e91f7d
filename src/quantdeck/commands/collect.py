"""`quantdeck collect`: fill a store of bars from a feed."""

from __future__ import annotations

import argparse

from quantdeck.app import open_app
from quantdeck.collectors.demo import copied
from quantdeck.commands import UsageError, chosen_servers, collect_alpaca, logged, up_to
from quantdeck.commands.worlds import add_into_demo, bars_of_a_file
from quantdeck.core.errors import SourceError
from quantdeck.domain.demo_instruments import INSTRUMENTS
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles

__all__ = ["add", "run"]


def add(command: argparse.ArgumentParser) -> None:
    feeds = command.add_subparsers(metavar="FEED", dest="feed", required=True)
    demo = feeds.add_parser("demo", help="the demo market, made up and the same for the same seed")
    demo.add_argument("--days", type=up_to(3650), default=30, help="up to the present (default 30, at most 3650)")
    demo.add_argument("--seed", type=up_to(2**63 - 1), default=7, help="of the market (default 7)")
    demo.add_argument("--symbols", metavar="A,B", help=f"which, with commas between (default all {len(INSTRUMENTS)})")
    add_into_demo(demo)
    demo.add_argument("--quiet", action="store_true", help="say nothing of what is done")
    demo.set_defaults(collect=_run_demo)
    collect_alpaca.add(
        feeds.add_parser("alpaca", help="stocks and coins of Alpaca, by the minute, until it is stopped")
    )


def run(arguments: argparse.Namespace) -> int:
    status: int = arguments.collect(arguments)
    return status


def _run_demo(arguments: argparse.Namespace) -> int:
    settings = bars_of_a_file(Settings.read(), arguments, "which computes this market already")
    symbols = list(INSTRUMENTS) if arguments.symbols is None else arguments.symbols.split(",")
    if unknown := [symbol for symbol in symbols if symbol not in INSTRUMENTS]:
        raise UsageError(f"the demo market has no {unknown[0][:40]!r}; there are {', '.join(INSTRUMENTS)}")
    return logged(settings, _collect(settings, symbols, arguments), level="error")


async def _collect(settings: Settings, symbols: list[str], arguments: argparse.Namespace) -> None:
    written = 0
    async with open_app(settings, chosen_servers(["market-data-mcp"])) as app:
        now = app.runtime.clock.now()
        try:
            store = app.runtime.source(Candles)
            for place, symbol in enumerate(symbols, 1):
                steps = [n async for n in copied(symbol, store, seed=arguments.seed, days=arguments.days, now=now)]
                written += sum(steps)
                if not arguments.quiet:
                    print(f"{place:2} of {len(symbols)}  {symbol:8} {sum(steps):>9,} bars", flush=True)
        except SourceError as error:
            raise UsageError(error.message) from error
    if not arguments.quiet:
        where = "here" if settings.is_demo else f"in {store.source}, which answers name as their source"
        print(f"{written:,} bars of the demo market are new {where}: none of them is real")
        if settings.is_demo:
            print("This is a demo world: QUANTDECK_CANDLES=embedded serves these bars there in place of its own.")
