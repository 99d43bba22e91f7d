"""The dialect of the tools catalog: MCP-nnn codes, limits, timeouts and caching per tool.

Over REST every answer is in the spec's envelope; over MCP the result is bare and what the envelope
would say stands in `_meta`. Failures are the error envelope on both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from quantdeck.core.clock import iso
from quantdeck.core.contract import Contract, Handler, Policy
from quantdeck.core.errors import ErrorCode, SourceError, ToolError
from quantdeck.core.wire import Answer, digest, encode
from quantdeck.dialects import schemas
from quantdeck.dialects.declaring import read
from quantdeck.dialects.spec import Spec

__all__ = ["CODES", "catalog"]

log = logging.getLogger(__name__)

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


class Catalog(Spec):
    """Numbered codes, and an envelope over REST."""

    name = "catalog"
    invalid = INVALID_ARGS
    timeout = TIMEOUT
    unauthorized = UNAUTHORIZED
    internal = INTERNAL
    unavailable = BACKEND_UNAVAILABLE
    limited = RATE_LIMITED
    conflict = IDEMPOTENCY_CONFLICT
    common = (
        INVALID_ARGS, UNAUTHORIZED, BACKEND_UNAVAILABLE, TIMEOUT, IDEMPOTENCY_CONFLICT,
        RATE_LIMITED, OUTPUT_VIOLATION, INTERNAL,
    )  # fmt: skip

    def tool(
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
        revised: bool = False,
    ) -> Callable[[Handler], Contract]:
        """Declare a tool by its dotted name."""
        policy = Policy(
            cache_s=cache_s,
            deadline_s=deadline_ms / 1000,
            p95_ms=p95_ms,
            per_minute=per_minute,
            effect=effect,
            vary=vary,
            revised=revised,
        )

        def declared(handler: Handler) -> Contract:
            contract = read(handler, dialect=self, policy=policy, errors=errors, name=name)
            # What an effect answers is checked when it is remembered: a refusal before would free its key.
            return contract if effect else replace(contract, handler=_checked(contract))

        return declared

    def readable(self) -> Callable[[Handler], Contract]:
        """Declare what a prompt is made of."""
        return lambda handler: read(handler, dialect=self, policy=Policy(deadline_s=5.0), is_tool=False)

    def success(self, call: Any, data: Any) -> Answer:
        if call.contract.policy.effect:
            _check(call.contract, data)
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
        return Answer(body, is_error=True, status=code.status, code=code.code, headers=_limits(call))

    def translate(self, contract: Contract, error: SourceError) -> ToolError:
        told = super().translate(contract, error)
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
        if call.cache_key is not None:
            facts["idempotency_key"] = digest(call.cache_key)[:16]
        return facts


def _checked(contract: Contract) -> Handler:
    """The tool, whose answers are held against its published schema as it runs, because this spec says so."""

    async def checked(**given: Any) -> Any:
        data = await contract.handler(**given)
        _check(contract, data)
        return data

    return checked


def _check(contract: Contract, data: Any) -> None:
    if (problem := _violation(contract.name, contract.returns)(encode(data))) is not None:
        log.error("output_violation", extra={"fields": {"tool": contract.name, "problem": problem}})
        raise OUTPUT_VIOLATION("The answer does not match its schema")


@cache
def _violation(tool: str, returns: Any) -> Callable[[bytes], str | None]:
    """By the tool's name too: equal types of two tools may have other descriptions."""
    del tool
    return schemas.violation(schemas.output_schema(returns))


def _limits(call: Any) -> dict[str, str]:
    if call.grant is None:
        return {}
    window = {"Limit": call.grant.limit, "Remaining": call.grant.remaining, "Reset": call.grant.wait_s}
    headers = {f"X-RateLimit-{name}": str(number) for name, number in window.items()}
    return headers if call.grant.granted else {**headers, "Retry-After": str(call.grant.wait_s)}


catalog = Catalog()
