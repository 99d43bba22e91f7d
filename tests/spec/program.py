"""What the program is, in the trees that the promises are in.

`tools` needs no hand when a server or a spec is added. `facts` are read from wherever the program keeps
them; whoever builds something that a spec promises beside its tools adds a line here, or names the
test that shows it in docs/spec/proved.toml.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from functools import cache
from typing import Any, get_args

from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import EmptyResult, Request

from docs.generator.settings_page import Setting, settings
from quantdeck import cli, listing, servers
from quantdeck.app import ADAPTERS, open_app
from quantdeck.commands import collect_alpaca
from quantdeck.core.contract import Contract, Source
from quantdeck.core.dialect import Dialect
from quantdeck.core.errors import ErrorCode
from quantdeck.core.server import Server
from quantdeck.dialects import backtest_events, catalog, chart, pyth, tradestream
from quantdeck.domain import crossings, event_types, watchlist
from quantdeck.listing import prompts, resources
from quantdeck.servers.chart_signals import get_capabilities
from quantdeck.settings import Http, Settings
from quantdeck.sources.candles import layout, shelf
from quantdeck.transports.collector_http import CollectorApp
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.watchers import Watchers
from tests.spec import answers
from tests.spec.difference import ANY, tidy
from tests.spec.notation import shape
from tests.support.dialects import DIALECTS

__all__ = ["facts", "spec_of", "tools"]

_SPEC_OF = {"chart": "chart_signals"}  # the others are named as their dialects are


def tools(spec: str) -> dict[str, dict[str, Any]]:
    """Every tool of the servers of this spec."""
    return {
        contract.name: _tool(server, contract)
        for server in _servers()
        for contract in server.tools
        if spec_of(contract.dialect) == spec
    }


def facts(spec: str) -> dict[str, Any]:
    """What can be said of the whole."""
    return _FACTS[spec]() if spec in _FACTS else _plain(spec)


@cache
def _servers() -> tuple[Server, ...]:
    return tuple(servers.load(name) for name in servers.NAMES)


def spec_of(dialect: Dialect) -> str:
    """The name of its file in docs/spec."""
    return _SPEC_OF.get(dialect.name, dialect.name)


def _tool(server: Server, contract: Contract) -> dict[str, Any]:
    policy = contract.policy
    return {
        "server": server.name,
        "description": contract.description,
        "input": tidy(contract.input_schema),
        "output": tidy(contract.output_schema),
        "fields": dict.fromkeys(_fields(contract.output_schema), ANY),
        "errors": {code.code: code.description for code in contract.errors},
        "annotations": listing.hints(contract),
        "adapters": dict.fromkeys(_adapters(contract.sources[0]), ANY) if contract.sources else {},
        "cacheable": policy.cache_s is not None,
        "cache_ttl_s": policy.cache_s,
        "timeout_ms": round(policy.deadline_s * 1000),
        "rate_limit_per_min": policy.per_minute,
        "p95_slo_ms": policy.p95_ms,
    }


def _fields(schema: Any) -> Iterator[str]:
    """The names of all members at any depth."""
    if isinstance(schema, Mapping):
        yield from schema.get("properties", {})
        for held in schema.values():
            yield from _fields(held)
    elif isinstance(schema, list):
        for held in schema:
            yield from _fields(held)


def _adapters(kind: type[Source]) -> list[str]:
    """Where this kind of source can come from: a relational database, what a URL may choose, or the process itself."""
    port = kind.__module__.removeprefix("quantdeck.sources.").split(".")[0]
    if port == "sql":
        return ["sqlite", "postgresql"]
    return sorted(set(ADAPTERS[port][1].values())) if port in ADAPTERS else [kind.source]


# facts that several specs speak of


def _transports() -> dict[str, Any]:
    """stdio, and what `quantdeck serve` has options for."""
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        cli.main(["serve", "--help"])
    return {"stdio": ANY} | ({"http": ANY} if "--http" in printed.getvalue() else {})


def _flags(command: str) -> set[str]:
    """The options of a command of ours."""
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        cli.main([command, "--help"])
    return set(re.findall(r"--[a-z][a-z-]*", printed.getvalue().rpartition("options:")[2])) - {"--help"}


def _statuses(codes: Iterable[ErrorCode]) -> dict[str, int]:
    return {code.code: code.status for code in codes}


@cache
def _settings() -> dict[str, Setting]:
    """By each of their names in the environment."""
    return {name: setting for setting in settings() for name in setting.names}


def _codes_in(module: Any) -> list[ErrorCode]:
    return [value for value in vars(module).values() if isinstance(value, ErrorCode)]


def _plain(spec: str) -> dict[str, Any]:
    """Of a spec that promises nothing but tools and codes."""
    (dialect,) = (found for found in DIALECTS if spec_of(found) == spec)
    return {
        "transports": _transports(),
        "error_codes": {code.code: code.description for code in dialect.common},
    }


# each spec's own


def _tradestream() -> dict[str, Any]:
    dialect = tradestream.tradestream
    failed = answers.failure(dialect, tradestream.INVALID_SYMBOL, symbol="?")
    return {
        "transports": _transports(),
        "standard_errors": _statuses(dialect.common),
        "envelope_error": shape(failed.body, opaque={"details"}),
        "pools": dict(_pools()),
    }


def _pools() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every technology's pool: settings whose names end in what the spec calls them."""
    words = {"idle_s": "idle_timeout_s", "connect_s": "connection_timeout_s"}
    for name in ("postgresql", "influxdb", "grpc"):
        if name in Settings.model_fields:
            held = getattr(Settings(), name).model_dump()
            yield name, {words.get(key, key): value for key, value in held.items()}


def _chart() -> dict[str, Any]:
    failed = answers.failure(chart.chart, chart.INSUFFICIENT_DATA, symbol="AAPL")
    return {
        "transports": _transports(),
        "version": get_capabilities.VERSION,
        "indicators": {
            "ema": crossings.EMA,
            "sma": crossings.SMA,
            "macd": list(crossings.MACD),
            "rsi": crossings.RSI,
            "bb": list(crossings.BB),
            "min_bars": crossings.BARS_NEEDED,
            "max_bars_in_memory": shelf.IN_MEMORY,
        },
        "crossing_rules": {name: _written(rule) for name, rule in crossings.RULES.items()},
        "storage": dict(_paths()),
        "watchlist": {"stocks": list(watchlist.DEFAULT.stocks), "crypto": list(watchlist.DEFAULT.crypto)},
        "error_codes": {code.code: code.description for code in _codes_in(chart)} | asyncio.run(_unknown_method()),
        "error_data_example": shape(failed.body, opaque={"data"}),
        "http": {
            "framework": _framework(),
            "port": collect_alpaca.PORT,
            "purpose": "optional separate process, webhooks",
        },
    }


def _framework() -> str:
    return type(CollectorApp(None, Http(), "")._app).__name__  # type: ignore[arg-type]


def _written(rule: Iterable[crossings.Comparison]) -> str:
    """A rule as the spec writes it; the width of the bands has no name there."""
    written = " and ".join(f"{compared.left} {compared.sign} {compared.right}" for compared in rule)
    return written.replace("last.bb_width", "(bb_upper - bb_lower) / bb_middle")


def _paths() -> Iterator[tuple[str, str]]:
    """Where a symbol's bars of a month are, as the spec writes it."""
    for symbol, written in (("SYMBOL", "{SYMBOL}"), ("SYMBOL/USD", "{SYMBOL_USD}")):
        name = layout.name_of(symbol)
        assert name is not None
        path = f"data/{name.folder}/{name.file(0)}".replace(name.stem, written).replace("1970-01", "{YYYY-MM}")
        yield name.folder.split("/")[0], path


async def _unknown_method() -> dict[str, str]:
    served = _servers()
    async with (
        open_app(Settings(), served) as app,
        Client(mcp_server(app, served, Watchers()), mode="legacy") as client,
    ):
        try:
            await client.session.send_request(Request(method="no/such", params=None), EmptyResult)
        except MCPError as error:
            return {str(error.code): error.message}
    return {}


def _events() -> dict[str, Any]:
    dialect = backtest_events.backtest_events
    code = backtest_events.RUN_NOT_FOUND
    failed = (answers.failure(dialect, code), answers.failure(dialect, code, runId="?"))
    return {
        "parameter_case": "camelCase" if dialect.spell("page_size") == "pageSize" else "snake_case",
        "error_codes": {
            code.code: {"description": code.description, "http": code.status} for code in _codes_in(backtest_events)
        },
        "event_types": list(event_types.EVENT_TYPES),
        "severities": list(event_types.SEVERITIES),
        "categories": list(event_types.CATEGORIES),
        "targets": {},  # figures that tests and benchmarks show
        "error_envelope": shape(*(heard.body for heard in failed), opaque={"details"}),
    }


def _catalog() -> dict[str, Any]:
    codes: dict[str, Any] = {c.code: {"description": c.description, "retry": c.retry} for c in catalog.CODES}
    refused = answers.second_call_in_a_minute(catalog.catalog).body
    codes[refused["code"]]["after_delay"] = refused["details"]["retry_after_s"] > 0
    return {"error_codes": codes, "http": {"port": Settings().http.port}}


def _pyth() -> dict[str, Any]:
    dialect = pyth.pyth
    went_well = answers.success(dialect).event
    went_wrong = [answers.failure(dialect, code) for code in dialect.common]
    logged = [went_well, *(heard.event for heard in went_wrong)]
    written = answers.logged()
    fields = {field for event in logged for field in event}
    of_server = [
        server for server in _servers() if any(spec_of(contract.dialect) == "pyth" for contract in server.contracts)
    ]
    return {
        "transports": _transports(),
        "errors": {"timeout": answers.failure(dialect, dialect.timeout).text},
        "log_fields": dict.fromkeys(fields | written.keys(), ANY),
        "log_optional": dict.fromkeys(fields - (went_well.keys() & written.keys()), ANY),
        "log_enums": {
            "transport": {event["transport"]: ANY for event in (written, *answers.logged_over_http())},
            "status": {event["status"]: ANY for event in logged},
            "error_type": {event["error_type"]: ANY for event in logged if "error_type" in event},
        },
        "log_levels": dict.fromkeys(get_args(Settings.model_fields["log_level"].annotation), ANY),
        "settings": {name: found.default for name, found in _settings().items() if name.startswith(("PYTH_", "PORT"))},
        "flags": dict.fromkeys(_flags("pyth"), ANY),
        "resources": {found["uri"]: found["description"] for found in resources(of_server)},
        "resource_cache_s": {found["uri"]: found["cache_ttl_s"] for found in resources(of_server)},
        "prompts": {found["name"]: found["description"] for found in prompts(of_server)},
    }


_FACTS: dict[str, Callable[[], dict[str, Any]]] = {
    "tradestream": _tradestream,
    "chart_signals": _chart,
    "backtest_events": _events,
    "catalog": _catalog,
    "pyth": _pyth,
}
