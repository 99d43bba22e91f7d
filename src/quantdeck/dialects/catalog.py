"""The dialect of the tools catalog: MCP-nnn codes, limits, timeouts and caching per tool.

Over REST every answer is in the spec's envelope; over MCP the result is bare and what the envelope
would say stands in `_meta`. Failures are the error envelope on both.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from quantdeck.core.clock import iso
from quantdeck.core.contract import Contract, Handler, Policy, read
from quantdeck.core.dialect import Dialect
from quantdeck.core.errors import ErrorCode, SourceError, ToolError
from quantdeck.core.wire import Answer, canonical

__all__ = ["CODES", "catalog"]

INVALID_ARGS = ErrorCode("MCP-001", "Invalid input arguments or schema violation", 400)
UNAUTHORIZED = ErrorCode("MCP-002", "Authentication or authorization failed", 401)
BACKEND_UNAVAILABLE = ErrorCode("MCP-003", "External dependency unavailable", 503, retry=True)
TIMEOUT = ErrorCode("MCP-004", "Tool execution timeout", 504, retry=True)
IDEMPOTENCY_CONFLICT = ErrorCode("MCP-005", "Idempotency key conflict", 409)
RATE_LIMITED = ErrorCode("MCP-006", "Rate limit violation", 429, retry=True)
UNKNOWN_TOOL = ErrorCode("MCP-007", "Tool not found in registry", 404)
NO_HANDLER = ErrorCode("MCP-008", "Tool handler not implemented", 501)
OUTPUT_VIOLATION = ErrorCode("MCP-009", "Tool output doesn't match schema", 500)
INSUFFICIENT_DATA = ErrorCode("MCP-010", "Not enough data for calculation", 422, retry=True)
MISSING_CONFIGURATION = ErrorCode("MCP-011", "Required configuration not found", 422)
INSUFFICIENT_LIQUIDITY = ErrorCode("MCP-012", "Market liquidity too low for simulation", 422)
KEY_NOT_FOUND = ErrorCode("MCP-013", "State key doesn't exist", 404)
QUOTA_EXCEEDED = ErrorCode("MCP-014", "Storage limit reached", 507)
INTERNAL = ErrorCode("MCP-999", "Unexpected server error", 500, retry=True)

CODES = (
    INVALID_ARGS, UNAUTHORIZED, BACKEND_UNAVAILABLE, TIMEOUT, IDEMPOTENCY_CONFLICT, RATE_LIMITED,
    UNKNOWN_TOOL, NO_HANDLER, OUTPUT_VIOLATION, INSUFFICIENT_DATA, MISSING_CONFIGURATION,
    INSUFFICIENT_LIQUIDITY, KEY_NOT_FOUND, QUOTA_EXCEEDED, INTERNAL,
)  # fmt: skip


class Catalog(Dialect):
    """Numbered codes, and an envelope over REST."""

    name = "catalog"
    invalid = INVALID_ARGS
    timeout = TIMEOUT
    unauthorized = UNAUTHORIZED
    internal = INTERNAL
    unavailable = BACKEND_UNAVAILABLE
    limited = RATE_LIMITED
    conflict = IDEMPOTENCY_CONFLICT
    output_violation = OUTPUT_VIOLATION
    common = (
        INVALID_ARGS, UNAUTHORIZED, BACKEND_UNAVAILABLE, TIMEOUT, IDEMPOTENCY_CONFLICT,
        RATE_LIMITED, OUTPUT_VIOLATION, INTERNAL,
    )  # fmt: skip

    def tool(  # noqa: PLR0913 - one keyword for each thing the spec says of a tool
        self,
        name: str,
        *,
        deadline_ms: float,
        p95_ms: float,
        per_minute: int,
        cache_s: float | None = None,
        errors: tuple[ErrorCode, ...] = (),
        effect: bool = False,
        vary: tuple[str, ...] = (),
    ) -> Callable[[Handler], Contract]:
        """Declare a tool by its dotted name."""
        policy = Policy(
            cache_s=cache_s,
            deadline_s=deadline_ms / 1000,
            p95_ms=p95_ms,
            per_minute=per_minute,
            effect=effect,
            vary=vary,
            check_output=True,
        )
        return lambda handler: read(handler, dialect=self, policy=policy, errors=errors, name=name)

    def success(self, call: Any, data: Any) -> Answer:
        if call.transport != "rest":
            return Answer(data, meta=self.meta(call), headers=_limits(call))
        facts = self._facts(call)
        body = {
            "error": False,
            "data": data,
            "corr_id": facts.pop("corr_id"),
            "timestamp": facts.pop("timestamp"),
            "tool": call.contract.name,
            "duration_ms": facts.pop("duration_ms"),
            "metadata": {**facts, "source": call.source},
        }
        return Answer(body, headers=_limits(call))

    def failure(self, call: Any, error: ToolError) -> Answer:
        code = error.code
        body = {
            "error": True,
            "code": code.code,
            "message": error.message,
            "corr_id": call.correlation_id,
            "details": error.details,
            "timestamp": iso(call.now),
            "tool": call.contract.name,
        }
        return Answer(
            body, is_error=True, status=code.status, code=code.code, headers=_limits(call)
        )

    def translate(self, error: SourceError) -> ToolError:
        told = super().translate(error)
        if told.code is BACKEND_UNAVAILABLE:  # clients look for these two words
            return told.code(f"Backend unavailable: {told.message}", **told.details)
        return told

    def meta(self, call: Any) -> dict[str, Any]:
        return {**super().meta(call), **self._facts(call)}

    def _facts(self, call: Any) -> dict[str, Any]:
        facts = {
            "corr_id": call.correlation_id,
            "timestamp": iso(call.now),
            "duration_ms": round(call.elapsed_ms, 3),
            "cached": call.cached,
        }
        if call.contract.policy.cache_s is not None:
            derived = canonical([call.contract.name, call.values])
            facts["idempotency_key"] = sha256(derived).hexdigest()[:16]
        return facts


def _limits(call: Any) -> dict[str, str]:
    return call.grant.headers if call.grant is not None else {}


catalog = Catalog()
