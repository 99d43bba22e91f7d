"""The dialect of the first spec: data and metadata in one envelope, worded codes, paging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, Field
from pydantic_core import core_schema

from quantdeck.core.contract import Contract, Handler, Policy
from quantdeck.core.errors import Denied, ErrorCode, NotInPast, RejectedValue, Rejects, SourceError, ToolError
from quantdeck.core.wire import Answer
from quantdeck.dialects.declaring import read
from quantdeck.dialects.spec import Spec
from quantdeck.domain import symbols

__all__ = [
    "DATABASE_ERROR",
    "INVALID_PARAMETER",
    "INVALID_SYMBOL",
    "NOT_FOUND",
    "UNAUTHORIZED",
    "Clamp",
    "Market",
    "Offset",
    "Page",
    "Pagination",
    "Symbol",
    "tradestream",
]

DATABASE_ERROR = ErrorCode("DATABASE_ERROR", "Database connection or query failed", 500, retry=True)
GRPC_ERROR = ErrorCode("GRPC_ERROR", "gRPC service connection failed", 502, retry=True)
TIMEOUT = ErrorCode("TIMEOUT", "Operation exceeded time limit", 504, retry=True)
INVALID_PARAMETER = ErrorCode("INVALID_PARAMETER", "Generic parameter validation error", 400)
NOT_FOUND = ErrorCode("NOT_FOUND", "Requested resource does not exist", 404)
UNAUTHORIZED = ErrorCode("UNAUTHORIZED", "Not authorized to access resource", 401)

INVALID_SYMBOL = ErrorCode("INVALID_SYMBOL", "Symbol format is invalid or not supported", 400)

_BACKTESTERS = ("grpc", "quantdeck")
"""Sources whose failures are the backtester's, whether it is a service or this program itself."""

T = TypeVar("T")


class Tradestream(Spec):
    """`{data, _metadata}`, or `{error: {code, message, details}, _metadata}`."""

    name = "tradestream"
    invalid = INVALID_PARAMETER
    timeout = TIMEOUT
    unauthorized = UNAUTHORIZED
    internal = DATABASE_ERROR  # the table has no other 500, and agents know this one
    unavailable = DATABASE_ERROR
    refresh = "force_refresh"
    common = (DATABASE_ERROR, GRPC_ERROR, TIMEOUT, INVALID_PARAMETER, NOT_FOUND, UNAUTHORIZED)

    def tool(
        self,
        *,
        errors: tuple[ErrorCode, ...],
        cache_s: float | None = None,
        deadline_s: float = 20.0,
        timeout: ErrorCode | None = None,
        effect: bool = False,
        forgets: tuple[str, ...] = (),
        revised: bool = False,
        idempotent: bool = False,
        secret: str | None = None,
    ) -> Callable[[Handler], Contract]:
        """Declare a tool. A cached one takes `force_refresh`, because this spec says so."""
        policy = Policy(
            cache_s=cache_s,
            deadline_s=deadline_s,
            timeout=timeout,
            effect=effect,
            forgets=forgets,
            revised=revised,
            idempotent=idempotent,
            secret=secret,
        )
        extra = {self.refresh: (ForceRefresh, False)} if cache_s is not None else {}
        return lambda handler: read(handler, dialect=self, policy=policy, errors=errors, extra=extra)

    def wrap(self, schema: dict[str, Any]) -> dict[str, Any]:
        number: dict[str, Any] = {"type": "number"}
        metadata = {
            "latency_ms": number,
            "cached": {"type": "boolean"},
            "cache_ttl_remaining": {"type": ["number", "null"]},
            "source": {"type": "string"},
        }
        return {
            "type": "object",
            "properties": {
                "data": schema,
                "_metadata": {"type": "object", "properties": metadata, "required": list(metadata)},
            },
            "required": ["data", "_metadata"],
        }

    def success(self, call: Any, data: Any) -> Answer:
        left_s = call.ttl_left_s
        metadata = {
            "latency_ms": round(call.elapsed_ms, 3),
            "cached": call.cached,
            "cache_ttl_remaining": None if left_s is None else round(left_s, 1),
            "source": call.source,
        }
        return Answer({"data": data, "_metadata": metadata}, meta=self.meta(call))

    def failure(self, call: Any, error: ToolError) -> Answer:
        told = {"code": error.code.code, "message": error.message, "details": error.details}
        return Answer(
            {"error": told, "_metadata": {"latency_ms": round(call.elapsed_ms, 3)}},
            is_error=True,
            status=error.code.status,
            code=error.code.code,
        )

    def code_of(self, contract: Contract, error: SourceError) -> ErrorCode:
        if isinstance(error, NotInPast):
            return NOT_FOUND
        if isinstance(error, Denied) and UNAUTHORIZED.code not in {declared.code for declared in contract.errors}:
            return DATABASE_ERROR  # our own login is no affair of the caller's, but where the tool says so
        code = super().code_of(contract, error)
        return GRPC_ERROR if code is DATABASE_ERROR and error.source in _BACKTESTERS else code


tradestream = Tradestream()


def _pair(text: str) -> str:
    return _resolved(text, symbols.pair)


def _market(text: str) -> str:
    return _resolved(text, symbols.pair_or_ticker)


def _resolved(text: str, resolve: Callable[[str], str]) -> str:
    try:
        return resolve(text)
    except symbols.UnknownSymbolError as error:
        found = {"candidates": list(error.candidates)} if error.candidates else {}
        raise RejectedValue(str(error), symbol=text[:80], normalized=error.tried, **found) from None


@dataclass(frozen=True, slots=True)
class Clamp:
    """A whole number of at least `low`; above `high` it is cut to `high`, which the answer echoes."""

    low: int
    high: int
    saturates = True  # so it takes numbers beyond 64 bits too

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda value: min(value, self.high), core_schema.int_schema(ge=self.low, strict=True)
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "maximum": self.high}


ForceRefresh = Annotated[bool, Field(description="Bypass cache and fetch fresh data")]

Symbol = Annotated[str, AfterValidator(_pair), Rejects(INVALID_SYMBOL), Field(description="Trading pair")]
"""A trading pair in any usual spelling; the tool gets the canonical one."""

Market = Annotated[str, AfterValidator(_market), Rejects(INVALID_SYMBOL), Field(description="Trading pair or ticker")]
"""A trading pair likewise, or the ticker of a stock."""

Offset = Annotated[int, Field(ge=0, description="Number of items to skip for pagination")]


@dataclass(frozen=True, slots=True)
class Pagination:
    """Where a page stands in the whole."""

    offset: int
    limit: int
    total: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, and how many there are in all."""

    items: list[T]
    pagination: Pagination

    @classmethod
    def of(cls, items: list[T], offset: int, limit: int, total: int) -> Page[T]:
        return cls(items, Pagination(offset, limit, total, offset + len(items) < total))
