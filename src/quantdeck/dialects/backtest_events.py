"""The dialect of the event-log spec: camelCase parameters, bare results, `{error: {…}}`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quantdeck.core.contract import Contract, Handler, Policy
from quantdeck.core.errors import ErrorCode, ToolError
from quantdeck.core.wire import Answer
from quantdeck.dialects.declaring import read
from quantdeck.dialects.spec import Spec

__all__ = [
    "DATABASE_ERROR",
    "EVENT_NOT_FOUND",
    "INVALID_JSON_PATH",
    "INVALID_PARAMETER",
    "INVALID_TIME_RANGE",
    "QUERY_TIMEOUT",
    "RESULT_TOO_LARGE",
    "RUN_NOT_FOUND",
    "backtest_events",
]

INVALID_PARAMETER = ErrorCode("INVALID_PARAMETER", "Parameter validation failed", 400)
RUN_NOT_FOUND = ErrorCode("RUN_NOT_FOUND", "Backtest run ID not found", 404)
EVENT_NOT_FOUND = ErrorCode("EVENT_NOT_FOUND", "Event ID not found", 404)
QUERY_TIMEOUT = ErrorCode("QUERY_TIMEOUT", "Query exceeded time limit", 408, retry=True)
RESULT_TOO_LARGE = ErrorCode("RESULT_TOO_LARGE", "Result set exceeds size limit", 413)
INVALID_TIME_RANGE = ErrorCode("INVALID_TIME_RANGE", "StartTime > EndTime or future timestamp", 400)
INVALID_JSON_PATH = ErrorCode("INVALID_JSON_PATH", "PropertyPath syntax invalid", 400)
DATABASE_ERROR = ErrorCode("DATABASE_ERROR", "SQLite operation failed", 500, retry=True)
UNAUTHORIZED = ErrorCode("UNAUTHORIZED", "The token's scopes do not cover this", 401)


class BacktestEvents(Spec):
    """Bare results and worded codes."""

    name = "backtest_events"
    invalid = INVALID_PARAMETER
    timeout = QUERY_TIMEOUT
    unauthorized = UNAUTHORIZED
    internal = DATABASE_ERROR
    unavailable = DATABASE_ERROR
    common = (INVALID_PARAMETER, QUERY_TIMEOUT, RESULT_TOO_LARGE, DATABASE_ERROR, UNAUTHORIZED)

    def tool(
        self,
        *,
        errors: tuple[ErrorCode, ...] = (),
        deadline_s: float = 10.0,
        p95_ms: float | None = None,
    ) -> Callable[[Handler], Contract]:
        """Declare a tool."""
        policy = Policy(deadline_s=deadline_s, p95_ms=p95_ms)
        return lambda handler: read(handler, dialect=self, policy=policy, errors=errors)

    def spell(self, name: str) -> str:
        first, *rest = super().spell(name).split("_")
        return first + "".join(word.capitalize() for word in rest)

    def failure(self, call: Any, error: ToolError) -> Answer:
        code = error.code
        told = {"code": code.code, "message": error.message, "details": error.details or None}
        return Answer({"error": told}, is_error=True, status=code.status, code=code.code)


backtest_events = BacktestEvents()
