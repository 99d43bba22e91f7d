"""`quantdeck collect alpaca`: bars of Alpaca into the store, until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import signal
import sys
from contextlib import suppress
from typing import Any

from pydantic import SecretStr

from quantdeck.app import open_app
from quantdeck.collectors.alpaca.alone import AlreadyRunning, alone
from quantdeck.collectors.alpaca.collector import Collector, Hopeless
from quantdeck.collectors.alpaca.owed import Owed
from quantdeck.commands import UsageError, chosen_servers, logged, up_to
from quantdeck.commands.worlds import refuse_any_demo
from quantdeck.connections.alpaca import SOURCE, keys
from quantdeck.core.clock import Clock
from quantdeck.core.errors import NotConfigured, SourceError
from quantdeck.domain.watchlist import Watchlist, read_watchlist
from quantdeck.settings import Settings
from quantdeck.sources.candles import Candles
from quantdeck.sources.watchlist import watched

__all__ = ["add"]

PORT = 8742
"""The chart spec's."""
SPECS = "home:files"
"""Where new series are files, as the chart spec describes them, and others go on where they are."""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("--symbols", metavar="A,B", help="which, with commas between (default the watchlist)")
    command.add_argument("--days", type=up_to(3650), default=30, help="of the past, to begin with (default 30)")
    command.add_argument(
        "--once", action="store_true", help="fetch what is missing and end; no stream, no extra needed"
    )
    command.add_argument(
        "--http", action="store_true", help="also POST /subscribe, GET /status and POST /hook on loopback"
    )
    command.add_argument(
        "--port", type=up_to(65535), default=PORT, help=f"of --http (default {PORT}; 0 takes a free one)"
    )
    command.add_argument("--quiet", action="store_true", help="say nothing of what is done; the log still does")
    command.set_defaults(collect=run)


def run(arguments: argparse.Namespace) -> int:
    settings = Settings.read()
    refuse_any_demo(settings)
    if Clock.parse(settings.clock).fixed:
        raise UsageError("QUANTDECK_CLOCK stands still, and a feed is of now; unset it to collect")
    if arguments.once and arguments.http:
        raise UsageError("--once ends at once, so that --http would serve nobody")
    watchlist = _chosen(settings, arguments.symbols)
    not_collecting = _why_not(settings, streaming=not arguments.once)
    if not_collecting and not arguments.http:
        raise UsageError(not_collecting)
    bare = _into(settings)
    try:
        with alone(settings.home_path / "alpaca.lock"):
            return logged(bare, _collect(bare, watchlist, arguments, not_collecting))
    except AlreadyRunning as error:
        raise UsageError(
            f"process {error} collects into {settings.home_path} already, and Alpaca allows one connection; stop it "
            "first, or POST /subscribe to it"
        ) from None


def _into(settings: Settings) -> Settings:
    """The store that is named, or the home with the spec's files; whoever fills a store asks it alone what it has."""
    changed: dict[str, Any] = {"alpaca": settings.alpaca.model_copy(update={"fill": False})}
    if settings.candles.get_secret_value() in ("", "home", "home:") and importlib.util.find_spec("duckdb"):
        changed["candles"] = SecretStr(SPECS)
    return settings.model_copy(update=changed)


def _chosen(settings: Settings, said: str | None) -> Watchlist:
    if said is None:
        read = watched(settings)
        for problem in read.problems:
            print(f"quantdeck: the watchlist: {problem}", file=sys.stderr)
    else:
        read = read_watchlist(said.replace(",", "\n"))
        if read.problems:
            raise UsageError(f"--symbols: {read.problems[0].partition(': ')[2]}")
    if not read.watchlist.symbols:
        raise UsageError("the watchlist is empty: name symbols in it, a line each, or by --symbols AAPL,BTC/USD")
    return read.watchlist


def _why_not(settings: Settings, *, streaming: bool) -> str:
    """Why nothing can be collected, as a sentence; empty where it can."""
    try:
        keys(settings.alpaca)
    except SourceError as error:
        return error.message
    if streaming and importlib.util.find_spec("alpaca") is None:
        return "Alpaca's client is not installed: pip install 'quantdeck[alpaca]'"
    return ""


async def _collect(settings: Settings, watchlist: Watchlist, arguments: argparse.Namespace, not_collecting: str) -> int:
    async with open_app(settings, chosen_servers(["market-data-mcp"])) as app:
        store = app.runtime.source(Candles)
        if store.source == SOURCE:
            raise UsageError("QUANTDECK_CANDLES names Alpaca itself; name the store that its bars are to go to")
        owed = Owed(settings.home_path / "alpaca.json", settings.candles.get_secret_value())
        collector = Collector(settings.alpaca, store, owed, days=arguments.days)
        try:
            with suppress(NotConfigured):  # a home without bars, which the first write gives it
                await store.ping()
            for problem in await collector.add(() if not_collecting else watchlist.symbols):
                print(f"quantdeck: {problem}; it is left out", file=sys.stderr)
            if not arguments.quiet:
                _announce(collector, settings, arguments, not_collecting)
            if arguments.once:
                await collector.fill()
            elif arguments.http:
                await _served(collector, settings, arguments.port, not_collecting)
            else:
                await _until_told(asyncio.create_task(collector.run()))
        except SourceError as error:
            raise UsageError(error.message) from error
        except Hopeless as hopeless:
            raise UsageError(str(hopeless)) from None
        finally:
            await collector.close()
    if left := len(collector.memory):
        raise UsageError(
            f"{left} bars could not be stored, and are lost but for what Alpaca still has; the log says why"
        )
    if not arguments.quiet:
        print(f"{collector.written:,} bars were stored in {store.source}")
    return 0


def _announce(collector: Collector, settings: Settings, arguments: argparse.Namespace, not_collecting: str) -> None:
    if not_collecting:
        print(f"{not_collecting}. Until then only POST /hook brings bars", flush=True)
        return
    watchlist, feed, where = collector.watchlist, settings.alpaca.feed, collector.store.source
    what = f"{len(watchlist.stocks)} stocks ({feed}) and {len(watchlist.crypto)} coins of Alpaca into {where}"
    doing = "fetching what is missing of" if arguments.once else "collecting"
    print(f"{doing} {what}{'' if arguments.once else '; Ctrl-C ends it'}", flush=True)


async def _until_told(work: asyncio.Task[None]) -> None:
    """Until it ends by itself, which is a failure, or a signal asks for it."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows, where Ctrl-C cancels
            loop.add_signal_handler(number, work.cancel)
    with suppress(asyncio.CancelledError):
        await work


async def _served(collector: Collector, settings: Settings, port: int, not_collecting: str) -> None:
    """Likewise, with its HTTP, whose server hears the signals."""
    from quantdeck.transports.collector_http import CollectorApp
    from quantdeck.transports.http import HttpServer, bind

    http = settings.http.model_copy(update={"host": "127.0.0.1", "port": port, "trusted_proxies": []})
    app = CollectorApp(collector, http, str(settings.home_path), not_collecting)
    with bind(http, guarded=False) as listener:
        place = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = HttpServer(app, http, lambda: print(f"listening on {place}", flush=True))
        work = asyncio.create_task(collector.run())
        work.add_done_callback(lambda _: setattr(server, "should_exit", True))
        await server.serve(sockets=[listener])
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
