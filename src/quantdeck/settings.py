"""Every setting, once: its name in the environment, the names others use for it, its default.

Ours first, then theirs, then the default; empty means unset. A nested one is QUANTDECK_POSTGRESQL__CONNECT_S.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic.fields import FieldInfo

__all__ = ["Cache", "Http", "MisconfiguredError", "PostgreSQL", "Settings"]


PREFIX = "QUANTDECK_"


def _also(*names: str) -> dict[str, Any]:
    """Names that the specs and their neighbours use for the same thing."""
    return {"also": list(names)}


def _listed(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _level(value: Any) -> Any:
    return {"warn": "warning"}.get(word := value.lower(), word) if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_listed)]


class MisconfiguredError(ValueError):
    """Settings that cannot be served. The sentence says what to change."""


class PostgreSQL(BaseModel):
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


class Cache(BaseModel):
    """The answer cache of one process."""

    max_entries: int = Field(4096, ge=1, description="answers kept at most")
    max_mb: int = Field(64, ge=1, description="their size together, in MiB")
    ttl_s: dict[str, float] = Field(default_factory=dict, description="by tool; 0 turns it off")


class Http(BaseModel):
    """The HTTP transport."""

    host: str = Field("127.0.0.1", description="address to bind; any but loopback needs a token")
    port: int = Field(8003, ge=0, le=65535, description="port to bind; 0 takes a free one")
    max_body_mb: float = Field(4, gt=0, description="largest request body, in MiB")
    hosts: Names = Field(default_factory=list, description="host names to answer to beside loopback")
    origins: Names = Field(default_factory=list, description="origins of web pages that may call")
    trusted_proxies: Names = Field(default_factory=list, description="whose forwarded headers are believed")
    drain_s: float = Field(30, gt=0, description="longest wait for calls in flight at the end")


class Settings(BaseModel):
    """What a process reads when it starts, and never again."""

    model_config = ConfigDict(frozen=True)

    home: Path = Field(Path("~/.quantdeck"), description="where data lives")
    clock: str = Field("wall", description="wall, or the instant at which the world stands still")

    database: SecretStr = Field(
        SecretStr(""),
        description="postgresql://… or sqlite:///file; default: SQLite files in the home",
        json_schema_extra=_also("DATABASE_URL"),
    )
    postgresql: PostgreSQL = PostgreSQL()

    state: str = Field("", description="where replicas agree on limits and idempotency keys: embedded, the default")

    tokens: Path | None = Field(None, description="token file of the HTTP transport")
    auth_token: SecretStr = Field(
        SecretStr(""),
        description="one bearer token for everything, in place of a token file",
        json_schema_extra=_also("AUTH_TOKEN"),
    )
    token: SecretStr = Field(SecretStr(""), description="what a stdio process presents")
    portfolio_token: SecretStr = Field(SecretStr(""), description="what a caller of portfolio-mcp must present")

    chart_errors: Literal["rpc", "result", "strict"] = Field("rpc", description="how chart-signals reports failures")
    dotted_names: bool = Field(False, description="list catalog tools with dots in their names")
    cache: Cache = Cache()
    deadline_s: dict[str, float] = Field(default_factory=dict, description="by tool")
    per_minute: dict[str, int] = Field(default_factory=dict, description="by tool")

    http: Http = Http()
    port: int | None = Field(None, json_schema_extra=_also("MCP_SERVER_PORT"), description="of HTTP")
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_level)] = Field(
        "info", description="debug, info, warning (or warn), error"
    )
    log_file: Path | None = Field(None, description="default: stderr")

    @property
    def home_path(self) -> Path:
        """The home, absolute."""
        return self.home.expanduser().absolute()

    @property
    def demo_mark(self) -> Path:
        """The file that makes a home a demo world."""
        return self.home_path / "demo.json"

    @property
    def is_demo(self) -> bool:
        return self.demo_mark.is_file()

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The settings that this environment says. Values are text; objects are written as JSON."""
        return cls.model_validate(_given(cls, os.environ if environ is None else environ, PREFIX))


def names(prefix: str, field_name: str, field: FieldInfo) -> list[str]:
    """What a setting is called in the environment, the name that wins first."""
    extra = field.json_schema_extra
    also = extra.get("also", []) if isinstance(extra, dict) else []
    return [f"{prefix}{field_name.upper()}", *map(str, also)]  # type: ignore[arg-type]


def _given(model: type[BaseModel], environ: Mapping[str, str], prefix: str) -> dict[str, Any]:
    return dict(_found(model, environ, prefix))


def _found(model: type[BaseModel], environ: Mapping[str, str], prefix: str) -> Iterator[tuple[str, Any]]:
    for field_name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if nested := _given(kind, environ, f"{prefix}{field_name.upper()}__"):
                yield field_name, nested
            continue
        said = next((environ[name] for name in names(prefix, field_name, field) if environ.get(name)), None)
        if said is not None:
            yield field_name, _read(said, names(prefix, field_name, field)[0])


def _read(said: str, name: str) -> Any:
    try:
        return orjson.loads(said) if said.startswith("{") else said
    except orjson.JSONDecodeError as error:
        raise MisconfiguredError(f"{name} is not JSON: {error}") from error
