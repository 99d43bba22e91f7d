"""The composition root: the only place that knows settings, sources and servers at once."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, SecretStr

from quantdeck.connections import extras
from quantdeck.connections.databases import Databases
from quantdeck.core.call import Call, Caller, Runtime, chain
from quantdeck.core.clock import Clock
from quantdeck.core.contract import Contract, Source
from quantdeck.core.errors import DeclarationError, NotConfigured, SourceError
from quantdeck.core.observe import Observer
from quantdeck.core.server import Background, Server
from quantdeck.core.wire import Answer, RpcFailure, digest
from quantdeck.flights import Flights
from quantdeck.ids import fresh_id
from quantdeck.observability import calls, logs
from quantdeck.observability.metrics import Metrics
from quantdeck.settings import MisconfiguredError, Settings
from quantdeck.sources.watchlist import watched

__all__ = ["ADAPTERS", "App", "Health", "open_app", "running"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Health:
    """One source as it is now: `healthy`, `unhealthy` or `disabled`, and what to do about it."""

    source: str
    kind: str
    status: str
    advice: str = ""
    setting: str = ""  # which said where it is, where it is unhealthy


HEALTH_S = 5.0
"""How long a source may take to say that it is there."""

BRISK_S, OPENING_S = 1.0, 1.0
"""Tools with less time than this have their sources opened before it is counted, once, and for no longer than that."""


@dataclass(frozen=True, slots=True)
class _Offer:
    server: str
    contract: Contract
    run: Callable[[Call], Any]


class App:
    """A set of servers that can be called, by whatever transport."""

    def __init__(
        self,
        servers: tuple[Server, ...],
        runtime: Runtime,
        settings: Settings,
        databases: Databases,
        metrics: Metrics,
    ) -> None:
        self.servers = servers
        self.runtime = runtime
        self.settings = settings
        self.databases = databases
        self.metrics = metrics
        self._id = fresh_id(32)
        self.local = Caller("stdio", secret=_digest(settings.token.get_secret_value()))
        self._offers: dict[int, _Offer] = {}
        self._tools: dict[str, _Offer] = {}
        self._openings: dict[type[Source], asyncio.Task[Any]] = {}
        for server in servers:
            for contract in (*server.contracts, *_completing(server)):
                self._offers[id(contract)] = _Offer(server.name, contract, chain(contract))
            for tool in server.tools:
                offer = self._offers[id(tool)]
                self._tools |= {tool.name: offer, tool.listed: offer}

    def tool(self, name: str) -> Contract | None:
        """The tool of this name in either spelling."""
        offer = self._tools.get(name)
        return None if offer is None else offer.contract

    def server_of(self, contract: Contract) -> str:
        """The server that offers this."""
        return self._offers[id(contract)].server

    async def call(
        self, contract: Contract, arguments: Mapping[str, Any], *, caller: Caller | None = None, **facts: Any
    ) -> Answer | RpcFailure:
        """Put one call through the pipeline. `facts` are what the transport knows of it."""
        offer = self._offers[id(contract)]
        facts["session_id"] = facts.get("session_id") or self._session(caller, facts.get("upstream_token"))
        if 0 < contract.policy.deadline_s < BRISK_S:
            await self._opened(contract)
        call = Call(
            contract=contract,
            arguments=arguments,
            runtime=self.runtime,
            caller=caller or self.local,
            server=offer.server,
            **facts,
        )
        answer: Answer | RpcFailure = await offer.run(call)
        return answer

    def _session(self, caller: Caller | None, upstream_token: str | None) -> str:
        """What calls without a session have in common: who asks, and with whose token.

        Every replica comes to the same, and a caller gets no other by what it says of itself.
        """
        return self._id if caller is None else digest(f"{caller.id} {upstream_token or ''}")[:32]

    async def _opened(self, contract: Contract) -> None:
        """Wait for the first opening of its sources: to make a file takes longer than such a tool has."""
        for kind in contract.sources:
            if kind not in self._openings:
                self._openings[kind] = self.runtime.tasks.start(self._health(kind))
            if not self._openings[kind].done():
                await asyncio.wait({self._openings[kind]}, timeout=OPENING_S)

    async def health(self) -> list[Health]:
        """Each source that these servers use, asked now; what a process has of its own is there while it is."""
        kinds = {kind for server in self.servers for c in server.contracts for kind in c.sources}
        outside = sorted((kind for kind in kinds if _is_outside(kind)), key=lambda kind: kind.__name__)
        asked = [self._health(kind) for kind in outside]
        if self.runtime.coordination.shared:
            asked.append(self._answers("coordination", lambda: self.runtime.coordination, "coordination"))
        return await asyncio.gather(*asked)

    def _health(self, kind: type[Source]) -> Coroutine[Any, Any, Health]:
        return self._answers(kind.__name__.lower(), partial(self.runtime.source, kind), kind.port)

    async def _answers(self, name: str, opened: Callable[[], Any], port: str) -> Health:
        try:
            async with asyncio.timeout(HEALTH_S):
                await opened().ping()
        except NotConfigured as error:
            return Health(name, error.source, "disabled", error.message)
        except TimeoutError:
            advice = f"It has not answered within {HEALTH_S:g} s"
            return Health(name, opened().source, "unhealthy", advice, self._chosen_by(port))
        except SourceError as error:
            return Health(name, error.source, "unhealthy", error.message, self._chosen_by(port))
        found = opened()
        return Health(name, found.source, "healthy", getattr(found, "about", ""))

    def _chosen_by(self, port: str) -> str:
        """The setting that says where this is; without a port, relational data."""
        setting = ADAPTERS[port][0] if port else "database"
        said = _said(self.settings, setting)
        if said.endswith(":") and said[:-1] not in _ALONE:  # the scheme alone: its group of settings has the address
            return f"QUANTDECK_{said[:-1].upper()}__URL"
        at_home = not port or _scheme(self.settings, port) in {*OF_THE_HOME, "home"}
        return "QUANTDECK_HOME" if at_home and not said else f"QUANTDECK_{setting.upper()}"


def _completing(server: Server) -> list[Contract]:
    """What completes an argument by asking a source."""
    offers = [*(offer.complete for offer in server.templates), *(offer.complete for offer in server.prompts)]
    return [one for complete in offers for one in complete.values() if isinstance(one, Contract)]


def _digest(token: str) -> str | None:
    return digest(token) if token else None


ADAPTERS: dict[str, tuple[str, dict[str, str]]] = {
    "coordination": ("state", {"embedded": "embedded", "redis": "redis", "rediss": "redis"}),
    "backtester": ("backtester", {"embedded": "inprocess", "grpc": "grpc", "grpcs": "grpc", "ray": "ray"}),
    "candles": (
        "candles",
        {
            "home": "home",
            "embedded": "embedded",
            "parquet": "parquet",
            "demo": "demo",
            "influxdb": "influxdb",
            "influxdbs": "influxdb",
            "alpaca": "alpaca",
        },
    ),
    "shared_state": ("state", {"embedded": "embedded", "redis": "redis", "rediss": "redis"}),
    "positions": ("nats", {"embedded": "embedded", "nats": "nats", "tls": "nats"}),
    "fills": ("nats", {"embedded": "embedded", "nats": "embedded", "tls": "embedded"}),
    "quotes": ("nats", {"embedded": "unquoted", "nats": "nats", "tls": "nats"}),
    "violations": ("nats", {"embedded": "embedded", "nats": "nats", "tls": "nats"}),
    "events": ("events", {"embedded": "embedded", "sqlite": "embedded"}),
    "pyth": ("feeds", {"pyth": "http", "demo": "demo"}),
    "sandbox": ("analysis", {"embedded": "workers"}),
}
"""Of each port the setting that chooses, and by its URL's scheme the file that answers, the default first."""

_ALPACA_KEYS = ("api_key", "secret_key")

OF_THE_HOME = frozenset({"embedded", "demo"})
"""Schemes of what lives in the home, and so is as synthetic as the home is."""

ONLY_COMPUTES = frozenset({"backtester"})
"""Ports that have no data of their own: what they say is as synthetic as what they are given."""

_ALONE = OF_THE_HOME | {"parquet", "home"}
"""Schemes that say enough without a colon."""


@asynccontextmanager
async def open_app(settings: Settings, servers: tuple[Server, ...]) -> AsyncIterator[App]:
    """An app that opens its sources when they are first asked, and closes them in the end."""
    _check(settings)
    databases = Databases(settings)
    metrics = Metrics()
    async with AsyncExitStack() as closing:
        closing.push_async_callback(databases.close)
        runtime = _runtime(settings, databases, metrics, closing)
        _check_said(settings, servers, runtime)
        try:
            yield App(servers, runtime, settings, databases, metrics)
        finally:
            if left := await runtime.tasks.finish(settings.http.drain_s):
                log.error("broken_off", extra={"fields": {"tasks": left, "after_s": settings.http.drain_s}})


@asynccontextmanager
async def running(app: App) -> AsyncIterator[None]:
    """While this is entered, the servers' background tasks run. Only a serving process enters it."""
    work = [task for server in app.servers for task in server.background]
    if app.settings.is_demo and not app.runtime.clock.fixed:
        work.append(_demo)
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(_kept_up(task, app)) for task in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _demo(app: Any) -> None:
    from quantdeck.demo import keep_current

    await keep_current(app.settings)


async def _kept_up(task: Background, app: App) -> None:
    """Run a background task again when it fails, ever more slowly: its failure is not the server's."""
    pause_s = 1.0
    while True:
        try:
            await task(app)
        except Exception:
            log.exception("background_task_failed", extra={"fields": {"task": task.__name__, "retry_s": pause_s}})
        else:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, 60.0)


def _check(settings: Settings) -> None:
    real = ["database"] if settings.database.get_secret_value() else []
    holding = {port: setting for port, (setting, _) in ADAPTERS.items() if port not in ONLY_COMPUTES}
    real += [setting for port, setting in holding.items() if _scheme(settings, port) not in OF_THE_HOME]
    real += [f"pyth__{name}" for name in ("access_token", "server_token") if _said(settings.pyth, name)]
    real += [f"alpaca__{name}" for name in _ALPACA_KEYS if _said(settings.alpaca, name)]
    if settings.is_demo and real:
        raise MisconfiguredError(
            f"{settings.home_path} is a demo world and QUANTDECK_{real[0].upper()} names something real; "
            "unset one of them, or point QUANTDECK_HOME elsewhere, so that nobody takes one for the other"
        )
    recorded = settings.backtests.events
    if settings.is_demo and recorded and not recorded.absolute().is_relative_to(settings.home_path):
        raise MisconfiguredError(
            f"{settings.home_path} is a demo world and QUANTDECK_BACKTESTS__EVENTS names a log outside of it; name one "
            "within, such as its events.db, so that nobody takes made-up runs for real ones"
        )


def _check_said(settings: Settings, servers: tuple[Server, ...], runtime: Runtime) -> None:
    """Have what a setting names read now, where one of these servers asks for it: nothing is connected by that."""
    kinds = {kind for server in servers for contract in server.contracts for kind in contract.sources if kind.port}
    for kind in kinds:
        if _said(settings, ADAPTERS[kind.port][0]):
            with suppress(SourceError):  # which its callers are told
                runtime.source(kind)


def _runtime(settings: Settings, databases: Databases, metrics: Metrics, closing: AsyncExitStack) -> Runtime:
    opened: dict[Any, Any] = {}

    def source(kind: type[Any]) -> Any:
        if kind not in opened:
            made = _opened(kind, settings, databases)
            closing.push_async_callback(made.close)
            opened[kind] = _filled(made, kind, settings, closing)
        return opened[kind]

    try:
        coordination = _adapter("coordination", settings, databases)
    except SourceError as error:  # every call asks it, so nothing could be served
        raise MisconfiguredError(error.message) from error
    closing.push_async_callback(coordination.close)

    return Runtime(
        clock=_clock(settings.clock),
        observer=Observer(calls.to(metrics.count, logs.emit), calls.span),
        coordination=coordination,
        source=source,
        flights=Flights(settings.cache.max_entries, settings.cache.max_mb * 2**20),
        options={
            "backtests": settings.backtests,
            "chart_errors": settings.chart_errors,
            "decisions": settings.decisions,
            "pyth": settings.pyth,
            "watchlist": partial(watched, settings),
            "alpaca": settings.alpaca,
            "execution": settings.execution,
        },
        cache_ttl_s=settings.cache.ttl_s,
        deadline_s=settings.deadline_s,
        per_minute=settings.per_minute,
        secrets={
            "portfolio": settings.portfolio_token.get_secret_value(),
            "pyth": settings.pyth.access_token.get_secret_value(),
            "pyth trial": settings.pyth.server_token.get_secret_value(),
        },
    )


def _opened(kind: type[Any], settings: Settings, databases: Databases) -> Any:
    """A port's adapter; or a source of rows, over the database that has its tables, or of this process alone.

    Of the last two either is given the settings that it takes.
    """
    if kind.port:
        return _adapter(kind.port, settings, databases)
    taken = {name: getattr(settings, name) for name in getattr(kind, "takes", ())}
    if not _is_outside(kind):
        return kind(**taken)
    databases.require(kind.group)
    return kind(databases.of(kind.group), source="demo" if settings.is_demo else "", **taken)


def _is_outside(kind: type[Any]) -> bool:
    """Whether it is something that may be away; with a group of no name it is of this process alone."""
    return getattr(kind, "group", None) != ""


def _adapter(port: str, settings: Settings, databases: Databases) -> Any:
    """A port's adapter: the scheme of its setting's URL says which file of the port's folder."""
    setting, files = ADAPTERS[port]
    file = files[_scheme(settings, port)]
    name = f"quantdeck.sources.{port}.{file}"
    connect = getattr(extras.load(name, extra=file), "connect", None)
    if connect is None:
        raise DeclarationError(f"{name} has no `connect(url, settings, databases)`; that is what makes it an adapter")
    return connect(_said(settings, setting), settings, databases)


def _filled(made: Any, kind: type[Any], settings: Settings, closing: AsyncExitStack) -> Any:
    """A store of bars with Alpaca behind it, where there are keys."""
    keys = all(_said(settings.alpaca, key) for key in _ALPACA_KEYS)
    if kind.port != "candles" or not (keys and settings.alpaca.fill):
        return made
    from quantdeck.sources.candles.filled import filled

    view = filled(made, settings)
    if view is not made:
        closing.push_async_callback(view.close)
    return view


def _scheme(settings: Settings, port: str) -> str:
    """Which adapter. Where nothing is said, `demo` in a demo world that has one, else the first.

    The first also where what is said is another port's affair: QUANTDECK_STATE chooses for two.
    """
    setting, files = ADAPTERS[port]
    said = _said(settings, setting)
    if not said:
        return "demo" if settings.is_demo and "demo" in files else next(iter(files))
    scheme, colon, _ = said.partition(":")
    if scheme in files and (colon or scheme in _ALONE):
        return scheme
    if colon and any(scheme in others for chosen, others in ADAPTERS.values() if chosen == setting):
        return next(iter(files))
    # What was said may hold a password, so only what is surely none of it is repeated.
    begins = f"begins with {scheme}:" if colon and _SCHEME.fullmatch(scheme) else "is no URL"
    may = ", ".join(f"{known}:" for known in files)
    raise MisconfiguredError(f"QUANTDECK_{setting.upper()} {begins}; it may begin with {may}")


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,20}")


def _said(settings: BaseModel, setting: str) -> str:
    """A setting that may be a secret, since a URL can hold a password."""
    value = getattr(settings, setting)
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _clock(text: str) -> Clock:
    try:
        return Clock.parse(text)
    except ValueError as error:
        raise MisconfiguredError(f"QUANTDECK_CLOCK is neither `wall` nor an instant: {error}") from error
