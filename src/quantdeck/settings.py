"""Every setting, once: its name in the environment, the names others use for it, its default.

Ours first, then theirs, then the default; empty means unset. A nested one is QUANTDECK_POSTGRESQL__CONNECT_S, or
several at once are a JSON object in QUANTDECK_POSTGRESQL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_origin
from urllib.parse import urlsplit

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from quantdeck.core.clock import Clock
from quantdeck.domain.timeframes import TIMEFRAMES

__all__ = [
    "Alerts",
    "Alpaca",
    "Backtests",
    "Cache",
    "Decisions",
    "EventLog",
    "Execution",
    "Grpc",
    "Http",
    "InfluxDB",
    "MisconfiguredError",
    "Nats",
    "PostgreSQL",
    "Redis",
    "Risk",
    "Sandbox",
    "Settings",
    "SharedState",
]


PREFIX = "QUANTDECK_"


def _also(*names: str) -> dict[str, Any]:
    """Names that the specs and their neighbours use for the same thing."""
    return {"also": list(names)}


def _listed(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _unlimited(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() == "none" else value


def _level(value: Any) -> Any:
    return {"warn": "warning"}.get(word := value.lower(), word) if isinstance(value, str) else value


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError("nobody's home is known by the name after ~; write the path in full") from error


def _told_clock(text: str) -> str:
    """The text as it is; one that no clock can show, or from which no day can be counted back, is refused."""
    try:
        instant = Clock.parse(text).instant
    except OverflowError:
        year = 0
    except ValueError as error:
        raise ValueError(f"neither `wall` nor an instant: {error}") from error
    else:
        year = 1970 if instant is None else instant.year
    if not 1970 <= year < 2200:
        raise ValueError("the clock must stand between 1970 and 2200")
    return text


def _timeframe(text: str) -> str:
    if text not in TIMEFRAMES:
        raise ValueError(f"must be one of {', '.join(TIMEFRAMES)}")
    return text


def _safe_url(url: str, scheme: str = "http", such: str = "https://pyth.dourolabs.app") -> str:
    """An address to which a token may be sent: encrypted, or on this machine. Without the slashes at its end."""
    parts = urlsplit(url)
    if parts.scheme == scheme and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError(
            f"must begin with {scheme}s://; a token is sent there, so {scheme}:// is for this machine only"
        )
    if parts.scheme not in (scheme, f"{scheme}s") or not parts.hostname or "@" in parts.netloc:
        raise ValueError(f"must be a URL such as {such}, without user or password")
    if parts.query or parts.fragment:
        raise ValueError("must be a URL without a question mark or a #")
    return url.rstrip("/")


def _safe_stream(url: str) -> str:
    return _safe_url(url, "ws", "wss://stream.data.alpaca.markets")


Names = Annotated[list[str], BeforeValidator(_listed)]
File = Annotated[Path, AfterValidator(_expanded)]
Seconds = Annotated[float, Field(ge=0)]
Limit = Annotated[float | None, Field(ge=0), BeforeValidator(_unlimited)]
Calls = Annotated[int, Field(ge=0)]
SafeUrl = Annotated[str, AfterValidator(_safe_url)]
SafeStream = Annotated[str, AfterValidator(_safe_stream)]
Account = Annotated[str, Field(min_length=1, max_length=128)]


class MisconfiguredError(ValueError):
    """Settings that cannot be served. The sentence says what to change."""


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PostgreSQL(_Group):
    """Its connection pool. The defaults are the first spec's."""

    min_connections: int = Field(2, ge=0, description="kept open when idle")
    max_connections: int = Field(10, ge=1, description="never more than this many")
    idle_s: float = Field(300, gt=0, description="after which an idle one above the minimum is closed")
    connect_s: float = Field(5, gt=0, description="longest wait for a connection, new or free")
    statement_cache_size: int = Field(100, ge=0, description="0 behind PgBouncer")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_connections > self.max_connections:
            raise ValueError(f"min_connections {self.min_connections} is above max_connections {self.max_connections}")
        return self


class InfluxDB(_Group):
    """Candles in InfluxDB. The sizes of the pool are the first spec's, the names tradestream's."""

    max_connections: int = Field(5, ge=1, description="never more than this many")
    idle_s: float = Field(60, gt=0, description="after which an idle one is closed")
    connect_s: float = Field(3, gt=0, description="longest wait for a connection, new or free")
    read_s: float = Field(15, gt=0, description="longest silence of a server that was asked")
    url: str = Field("", json_schema_extra=_also("INFLUXDB_URL"), description="of the server, http:// or https://")
    token: SecretStr = Field(SecretStr(""), json_schema_extra=_also("INFLUXDB_TOKEN"), description="versions 2 and 3")
    auth: Literal["token", "bearer"] = Field("token", description="how the token is presented")
    user: str = Field("", description="version 1, with a password")
    password: SecretStr = Field(SecretStr(""), description="version 1")
    org: str = Field("", json_schema_extra=_also("INFLUXDB_ORG"), description="sent along; versions 1 and 3 ignore it")
    bucket: str = Field("", json_schema_extra=_also("INFLUXDB_BUCKET"), description="its bucket or database")
    measurement: str = Field("candles", min_length=1, description="that holds the bars")
    tag: str = Field("currency_pair", min_length=1, description="that holds the symbol")
    separator: str = Field("/", max_length=1, description="between the halves of a pair in that tag")
    field_open: str = Field("open", min_length=1, description="name of the field")
    field_high: str = Field("high", min_length=1, description="name of the field")
    field_low: str = Field("low", min_length=1, description="name of the field")
    field_close: str = Field("close", min_length=1, description="name of the field")
    field_volume: str = Field("volume", min_length=1, description="name of the field")
    timeframe: Annotated[str, AfterValidator(_timeframe)] = Field(
        "1m", description="length of the bars that are stored"
    )
    lookback_days: int = Field(365, ge=1, le=100_000, description="how far back is looked; every query is bounded")


class Grpc(_Group):
    """A service that runs backtests, ours or tradestream's. The sizes of the pool are the first spec's."""

    max_connections: int = Field(3, ge=1, description="never more than this many")
    keepalive_interval_s: float = Field(30, gt=0, description="between questions whether a silent service is there")
    keepalive_timeout_s: float = Field(10, gt=0, description="longest wait for the answer, then the connection is dead")
    url: str = Field("", json_schema_extra=_also("GRPC_HOST"), description="host:port, where the URL names none")
    connect_s: float = Field(3, gt=0, description="longest wait for a connection")
    deadline_s: float = Field(60, gt=0, description="longest wait for a backtest")
    message_mb: float = Field(64, gt=0, le=1024, description="largest message, in MiB")
    peer_message_mb: float = Field(3.5, gt=0, le=1024, description="the same to a service of tradestream's")
    corrected: bool = Field(True, description="whether that one's annual figures are mended")
    ca_file: File | None = Field(
        None, json_schema_extra=_also("TLS_CA_CERT_PATH"), description="certificates to trust with grpcs://"
    )


class Redis(_Group):
    """What replicas have in common, where QUANTDECK_STATE names a Redis."""

    max_connections: int = Field(16, ge=1, description="never more than this many in one pool, of which there are two")
    connect_s: float = Field(2, gt=0, description="longest wait for a connection, new or free")
    read_s: float = Field(5, gt=0, description="longest silence of a server that was asked")
    prefix: str = Field("quantdeck:", pattern=r"^[^{}\s]{0,64}$", description="of every key")


class Nats(_Group):
    """Positions, quotes and violations, where QUANTDECK_NATS names a NATS with JetStream."""

    connect_s: float = Field(2, gt=0, description="longest wait for a connection")
    read_s: float = Field(2, gt=0, description="longest silence of a server that was asked")
    ack_s: float = Field(30, gt=0, description="after which a fill that nobody has counted is counted by another")
    stream: str = Field(
        "trading-events",
        pattern="^[A-Za-z0-9_-]{1,64}$",
        json_schema_extra=_also("NATS_STREAM"),
        description="that holds executions.fill",
    )
    positions: str = Field("positions", pattern="^[A-Za-z0-9_-]{1,64}$", description="bucket of what accounts hold")
    quotes: str = Field("quotes", pattern="^[A-Za-z0-9_-]{1,64}$", description="bucket of last quotes, by symbol")


class SharedState(_Group):
    """What one correlation id may keep in the catalog's shared state."""

    quota_mb: float = Field(16, gt=0, description="size of its values together, in MiB")
    quota_keys: int = Field(10_000, ge=1, description="keys at most")


class Cache(_Group):
    """The answer cache of one process."""

    max_entries: int = Field(4096, ge=1, description="answers kept at most")
    max_mb: int = Field(64, ge=1, description="their size together, in MiB")
    ttl_s: dict[str, Seconds] = Field(default_factory=dict, description="by tool; 0 turns it off")


class Backtests(_Group):
    """Backtests that this machine runs. Small ones are done in a thread, large ones in processes of their own."""

    processes: int = Field(2, ge=1, description="large ones at a time; more wait their turn")
    waiting: int = Field(16, ge=0, description="requests that the service holds beside those; more are refused")
    drain_s: float = Field(30, ge=0, description="longest wait of the service for backtests in flight at its end")
    bars: int = Field(1_000_000, ge=1, description="bars that run_backtest takes at most")
    fee: float = Field(0.001, ge=0, lt=1, description="of what changes hands in each fill, a fraction")
    slippage: float = Field(0.0, ge=0, lt=1, description="by which the price of each fill is worse, a fraction")
    events: File | None = Field(None, description="log into which run_backtest writes each as a run; none unless said")


class Sandbox(_Group):
    """How submitted code is run. Each analysis has an engine of its own."""

    isolation: Literal["full", "degraded"] = Field(
        "full", description="degraded runs code where Landlock and seccomp cannot be had; never over HTTP"
    )
    jit: bool = Field(False, description="compile TypeScript: faster arithmetic, but memory that can be executed")
    at_once: int = Field(4, ge=1, le=64, description="analyses at a time; more wait their turn")
    waiting: int = Field(16, ge=0, description="that may wait; more are answered that it is busy")
    spares: int = Field(2, ge=0, le=16, description="engines kept ready in a serving process, 45 MB each")


class EventLog(_Group):
    """How the log of backtest events is read."""

    reply_kb: int = Field(1024, ge=1, description="largest answer, in KiB; what does not fit is cut, and said")
    connections: int = Field(4, ge=1, le=4, description="questions that are read at once")


class Http(_Group):
    """The HTTP transport."""

    host: str = Field("127.0.0.1", description="address to bind; any but loopback needs a token")
    port: int = Field(8003, ge=0, le=65535, description="port to bind; 0 takes a free one")
    max_body_mb: float = Field(4, gt=0, description="largest request body, in MiB")
    hosts: Names = Field(default_factory=list, description="host names to answer to beside loopback")
    origins: Names = Field(default_factory=list, description="origins of web pages that may call")
    trusted_proxies: Names = Field(default_factory=list, description="whose forwarded headers are believed")
    arrival_s: float = Field(30, gt=0, description="longest wait for the head of a request, and for its body")
    drain_s: float = Field(30, gt=0, description="longest wait for calls in flight at the end")


class Decisions(_Group):
    """How much of a decision's grounds save_decision keeps."""

    reasoning_chars: int = Field(10_000, ge=1, description="characters of reasoning at most")
    calls: int = Field(50, ge=0, description="tool calls of one decision at most")
    result_bytes: int = Field(5 * 1024, ge=0, description="a tool call's longer result is left out, as JSON")
    calls_bytes: int = Field(100 * 1024, ge=2, description="all tool calls of one decision at most, as JSON")


class Risk(_Group):
    """What an account may risk for which nothing is stored. `none` leaves a limit out, 0 allows nothing."""

    max_position_size: Limit = Field(None, description="largest value of one position, in the account's currency")
    max_position_pct: Limit = Field(0.10, description="the same, as a fraction of the total balance; or none")
    max_exposure_pct: Limit = Field(0.50, description="largest value of all positions together, likewise")
    max_open_positions: Annotated[int | None, Field(ge=0), BeforeValidator(_unlimited)] = Field(
        20, description="symbols held at once, long and short apart; or none"
    )
    max_daily_loss: Limit = Field(None, description="loss since midnight UTC after which nothing more is opened")
    max_daily_loss_pct: Limit = Field(0.05, description="the same, as a fraction of what the day began with; or none")
    max_drawdown_pct: Limit = Field(None, description="fall from the highest balance after which likewise, a fraction")
    allow_short: bool = Field(False, description="whether more may be sold than is held")
    max_units: Limit = Field(None, description="largest size of one position, in units of the symbol")
    max_exposure: Limit = Field(None, description="largest value of all positions together, in the account's currency")


class Execution(_Group):
    """What the simulation of orders goes by where nobody's fills or quotes tell it better (docs/execution.md)."""

    spread_bps_fx: float = Field(0.8, gt=0, lt=1000, description="from bid to ask in a normal market, currencies")
    spread_bps_metal: float = Field(2.5, gt=0, lt=1000, description="likewise, metals")
    spread_bps_stock: float = Field(2.0, gt=0, lt=1000, description="likewise, stocks")
    spread_bps_crypto: float = Field(5.0, gt=0, lt=1000, description="likewise, crypto")
    daily_units_fx: float = Field(1e9, gt=0, description="traded in a day; bars of currencies count ticks at best")
    daily_units_metal: float = Field(5e6, gt=0, description="likewise, of metals")
    impact: float = Field(1.0, ge=0, le=10, description="of the square root of a day's share, in daily deviations")
    permanent_impact: float = Field(0.3, ge=0, le=10, description="of the share itself, likewise")
    max_participation: float = Field(0.1, gt=0, le=1, description="most of a day's volume that one order may be")

    def spread_of(self, kind: str) -> float:
        """By what is traded: stock, crypto, fx or metal."""
        spread: float = getattr(self, f"spread_bps_{kind}")
        return spread

    def daily_units_of(self, kind: str) -> float | None:
        """The same; None where bars tell it."""
        return getattr(self, f"daily_units_{kind}", None)


class Pyth(_Group):
    """Pyth Pro's two services: the router has latest prices, the history everything else."""

    access_token: SecretStr = Field(
        SecretStr(""), json_schema_extra=_also("PYTH_PRO_ACCESS_TOKEN"), description="a Pyth Pro token of one's own"
    )
    server_token: SecretStr = Field(
        SecretStr(""),
        json_schema_extra=_also("PYTH_PRO_SERVER_TOKEN"),
        description="shared by all who have no token, for trial; off where it is empty",
    )
    trial_rate_limit: int = Field(
        30, ge=1, json_schema_extra=_also("PYTH_TRIAL_RATE_LIMIT"), description="trial calls per minute and session"
    )
    channel: Literal["real_time", "fixed_rate@50ms", "fixed_rate@200ms", "fixed_rate@1000ms"] = Field(
        "fixed_rate@200ms", json_schema_extra=_also("PYTH_CHANNEL"), description="used where a call names none"
    )
    router_url: SafeUrl = Field(
        "https://pyth-lazer.dourolabs.app", json_schema_extra=_also("PYTH_ROUTER_URL"), description="of the router"
    )
    history_url: SafeUrl = Field(
        "https://pyth.dourolabs.app",
        json_schema_extra=_also("PYTH_HISTORY_URL"),
        description="of the history; one that ends in /v1 is understood too",
    )
    request_timeout_ms: int = Field(
        10_000, ge=1, json_schema_extra=_also("PYTH_REQUEST_TIMEOUT_MS"), description="longest wait for an answer"
    )
    retry_s: float = Field(0.5, ge=0, description="pause before the one retry, where the service names none")
    catalog_s: float = Field(300, ge=0, description="how long the list of feeds is kept, for each token")
    connections: int = Field(20, ge=1, description="to the services at most")
    max_answer_mb: float = Field(32, gt=0, description="largest answer that is read, in MiB")


class Alpaca(_Group):
    """Alpaca's market data: past bars by HTTP, new ones by a stream that `quantdeck collect alpaca` listens to."""

    api_key: SecretStr = Field(
        SecretStr(""), json_schema_extra=_also("ALPACA_API_KEY"), description="id of a key; paper trading's will do"
    )
    secret_key: SecretStr = Field(SecretStr(""), json_schema_extra=_also("ALPACA_SECRET_KEY"), description="its secret")
    feed: Literal["iex", "sip"] = Field(
        "iex", description="of stocks: iex, one exchange and free, or sip, all of them and paid for"
    )
    fill: bool = Field(True, description="with a key, whether symbols that the store of bars lacks are asked of Alpaca")
    data_url: SafeUrl = Field("https://data.alpaca.markets", description="of the past")
    stream_url: SafeStream = Field("wss://stream.data.alpaca.markets", description="of the stream")
    timeout_s: float = Field(10, gt=0, description="longest wait for an answer")
    connections: int = Field(5, ge=1, description="to the past at most")
    lookback_days: int = Field(3650, ge=1, le=100_000, description="how far back is looked; every question is bounded")
    most_counted: int = Field(50_000, ge=1, description="bars that are counted at most; they are counted by reading")
    flush_s: float = Field(60, gt=0, le=3600, description="the collector's pause between two writes")
    stall_s: float = Field(150, gt=0, description="of silence, after which it asks whether the stream still lives")
    backoff_s: float = Field(1, gt=0, description="its first pause before it connects again; then twice as long")
    backoff_max_s: float = Field(120, gt=0, description="its longest such pause")


class Alerts(_Group):
    """Subscriptions to alerts of chart-signals. They live in the serving process."""

    per_caller: int = Field(50, ge=1, description="subscriptions of one caller at most")
    in_all: int = Field(1000, ge=1, description="subscriptions of a process at most")
    lease_s: float = Field(86_400, gt=0, description="after which one ends that nobody has asked for")
    kept: int = Field(50, ge=1, le=1000, description="alerts that each keeps, the newest")
    look_every_s: float = Field(0.5, gt=0, le=2, description="pause between two looks for new bars")


class Settings(_Group):
    """What a process reads when it starts, and never again."""

    home: File = Field(Path("~/.quantdeck"), description="where data lives", validate_default=True)
    clock: Annotated[str, AfterValidator(_told_clock)] = Field(
        "wall", description="wall, or the instant at which the world stands still, between 1970 and 2200"
    )

    database: SecretStr = Field(
        SecretStr(""),
        description="postgresql://… or sqlite:////absolute/file; default: SQLite files in the home",
        json_schema_extra=_also("DATABASE_URL"),
    )
    postgresql: PostgreSQL = PostgreSQL()

    candles: SecretStr = Field(
        SecretStr(""),
        description="embedded, which is market.db in the home; parquet, the folder data there (or "
        "parquet:////absolute/folder); home, both of these, the default (home:files writes new symbols as files); "
        "influxdb://host:8086/bucket, which is meant also where only its URL is set; or alpaca:",
    )
    influxdb: InfluxDB = InfluxDB()
    alpaca: Alpaca = Alpaca()
    watchlist: File | None = Field(
        None, description="file of the symbols to collect and show; default: watchlist.txt in the home, else the spec's"
    )

    feeds: str = Field("", description="Pyth feeds: pyth:, the service itself and the default, or a demo world's own")
    pyth: Pyth = Pyth()

    state: SecretStr = Field(
        SecretStr(""),
        description="limits, idempotency keys, shared state: redis://host:6379/0, or embedded, the default",
        json_schema_extra=_also("REDIS_URL"),
    )
    redis: Redis = Redis()
    shared_state: SharedState = SharedState()

    nats: SecretStr = Field(
        SecretStr(""),
        description="nats://host:4222 (tls:// for TLS), which has positions and quotes and is told of violations",
        json_schema_extra=_also("NATS_URL"),
    )

    nats_streams: Nats = Nats()
    execution: Execution = Execution()

    events: str = Field(
        "", description="log of backtest events: sqlite:////absolute/file; default: events.db in the home (embedded:)"
    )
    event_log: EventLog = EventLog()

    backtester: str = Field(
        "",
        description="who runs backtests: embedded, the default, grpc://host:50051 (also where its URL is set), ray:…",
    )
    backtests: Backtests = Backtests()
    grpc: Grpc = Grpc()

    analysis: str = Field("", description="who runs submitted code: embedded, the default, is this machine")
    sandbox: Sandbox = Sandbox()

    tokens: File | None = Field(None, description="token file of the HTTP transport")
    auth_token: SecretStr = Field(
        SecretStr(""),
        description="one bearer token for everything, in place of a token file",
        json_schema_extra=_also("AUTH_TOKEN"),
    )
    hmac_secret: SecretStr = Field(
        SecretStr(""),
        description="with which requests over HTTP may be signed in place of a token",
        json_schema_extra=_also("API_KEY_HMAC_SECRET"),
    )
    token: SecretStr = Field(SecretStr(""), description="what a stdio process presents")
    portfolio_token: SecretStr = Field(SecretStr(""), description="what a caller of portfolio-mcp must present")

    account: Account = Field("default", description="whose portfolio; a token's own account counts first")
    risk: Risk = Risk()

    chart_errors: Literal["rpc", "result", "strict"] = Field("rpc", description="how chart-signals reports failures")
    alerts: Alerts = Alerts()
    dotted_names: bool = Field(False, description="list catalog tools with dots in their names")
    cache: Cache = Cache()
    decisions: Decisions = Decisions()
    deadline_s: dict[str, Seconds] = Field(default_factory=dict, description="by tool; 0 for none")
    per_minute: dict[str, Calls] = Field(default_factory=dict, description="by tool; 0 for no limit")
    reply_tokens: int = Field(
        20_000, ge=0, description="above which a reply in rows names its smaller form; 0 for never"
    )

    http: Http = Http()
    port: int | None = Field(
        None, ge=0, le=65535, json_schema_extra=_also("MCP_SERVER_PORT"), description="of HTTP, and it counts first"
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_level)] = Field(
        "info", json_schema_extra=_also("PYTH_LOG_LEVEL"), description="debug, info, warning (or warn), error"
    )
    log_file: File | None = Field(None, json_schema_extra=_also("PYTH_LOG_FILE"), description="default: stderr")

    @model_validator(mode="before")
    @classmethod
    def _implied(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Where InfluxDB is named and nothing is said of candles, they are there; likewise gRPC and backtests."""
        for group, setting in (("influxdb", "candles"), ("grpc", "backtester")):
            said = given.get(group) or {}
            if said.url if isinstance(said, InfluxDB | Grpc) else said.get("url"):
                given = {setting: f"{group}:", **given}
        return given

    @property
    def home_path(self) -> Path:
        """The home, absolute."""
        return self.home.absolute()

    @property
    def demo_mark(self) -> Path:
        """The file that makes a home a demo world."""
        return self.home_path / "demo.json"

    @property
    def unfinished_demo_mark(self) -> Path:
        """The file that stands for `demo_mark` until the demo world is made."""
        return self.home_path / "demo.unfinished.json"

    @property
    def is_demo(self) -> bool:
        return _is_file(self.demo_mark) or self.is_unfinished_demo

    @property
    def is_unfinished_demo(self) -> bool:
        """Whether the making of a demo world is under way, or was broken off."""
        return _is_file(self.unfinished_demo_mark)

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The settings that this environment says. Values are text; objects are written as JSON."""
        environ = {name: said for name, said in (os.environ if environ is None else environ).items() if said}
        _refuse_misspelt(environ)
        try:
            return cls.model_validate(_given(cls, environ, PREFIX))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            raise MisconfiguredError("; ".join(_told(problem, environ) for problem in problems)) from None


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - unlike Path's it never raises, whatever may not be looked into


def names(prefix: str, field_name: str, field: FieldInfo) -> list[str]:
    """What a setting is called in the environment, the name that wins first."""
    extra = field.json_schema_extra
    also = extra.get("also", []) if isinstance(extra, dict) else []
    return [f"{prefix}{field_name.upper()}", *map(str, also)]  # type: ignore[arg-type]


def _given(model: type[BaseModel], environ: Mapping[str, str], prefix: str) -> dict[str, Any]:
    return dict(_found(model, environ, prefix))


def _found(model: type[BaseModel], environ: Mapping[str, str], prefix: str) -> Iterator[tuple[str, Any]]:
    for field_name, field in model.model_fields.items():
        called = names(prefix, field_name, field)
        said = next((environ[name] for name in called if name in environ), None)
        if group := _group(field):
            whole = {} if said is None else _json(said, called[0])
            nested = {**whole, **_given(group, environ, f"{called[0]}__")}
            if nested:
                yield field_name, nested
        elif said is not None:
            yield field_name, _json(said, called[0]) if get_origin(field.annotation) is dict else said


def _group(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _json(said: str, name: str) -> dict[str, Any]:
    try:
        read = orjson.loads(said)
    except orjson.JSONDecodeError as error:
        raise MisconfiguredError(f"{name} is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise MisconfiguredError(f"{name} must be a JSON object")
    return read


def _every_name(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for field_name, field in model.model_fields.items():
        called = names(prefix, field_name, field)
        yield from called
        if group := _group(field):
            yield from _every_name(group, f"{called[0]}__")


def _refuse_misspelt(environ: Mapping[str, str]) -> None:
    """A name that is nearly a setting's was meant to be it; what is quite another is none of our business."""
    known = dict.fromkeys(_every_name(Settings, PREFIX))
    unknown = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    if not unknown:
        return
    from difflib import get_close_matches  # a few milliseconds that only a mistake costs

    ours = {name.removeprefix(PREFIX): name for name in known if name.startswith(PREFIX)}
    # Several groups may have a setting of one name; the one that stands first is meant.
    ours = {short.rpartition("__")[2]: name for short, name in reversed(ours.items())} | ours
    for name in unknown:
        for near in get_close_matches(name.removeprefix(PREFIX), ours, n=1, cutoff=0.8):
            raise MisconfiguredError(f"{name} is no setting; did you mean {ours[near]}?")


def _told(problem: Any, environ: Mapping[str, str]) -> str:
    """One problem under the name by which its setting was set; the value may be a secret and is not repeated."""
    kind: type[BaseModel] | None = Settings
    called, rest = [PREFIX.rstrip("_")], list(problem["loc"])
    while kind is not None and rest and rest[0] in kind.model_fields:
        field_name = str(rest.pop(0))
        field = kind.model_fields[field_name]
        called = names(PREFIX if kind is Settings else f"{called[0]}__", field_name, field)
        kind = _group(field)
    name = next((name for name in called if name in environ), called[0])
    cause = problem.get("ctx", {}).get("error")
    words = str(cause or problem["msg"]).replace("Input should be", "must be")
    words = words.replace("Extra inputs are not permitted", "is no setting")
    return f"{name}: {' '.join([*map(str, rest), words])}"
