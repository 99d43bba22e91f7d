"""The dialect of the chart spec: bare results, and failures as JSON-RPC errors numbered from -32001.

Those numbers are off-policy in the newest protocol (docs/adr/0014-off-policy-codes.md), so the
setting `chart_errors` decides: `rpc` (default), `result` (always on modern connections), `strict`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quantdeck.core.contract import Contract, Handler, Policy
from quantdeck.core.errors import ErrorCode, SourceError, ToolError
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects.declaring import read
from quantdeck.dialects.spec import Spec

__all__ = [
    "INSUFFICIENT_DATA",
    "INVALID_SYMBOL",
    "INVALID_TIMEFRAME",
    "UNAVAILABLE",
    "chart",
]

INSUFFICIENT_DATA = ErrorCode("-32001", "Insufficient data", 422)
INVALID_SYMBOL = ErrorCode("-32002", "Invalid symbol", 400)
INVALID_TIMEFRAME = ErrorCode("-32003", "Invalid timeframe", 400)
UNAVAILABLE = ErrorCode("-32004", "Market data unavailable", 503, retry=True)
# JSON-RPC's own numbers, for what the spec's table does not know
INVALID_PARAMS = ErrorCode("-32602", "Invalid params", 400)
UNAUTHORIZED = ErrorCode("-32600", "Invalid Request", 401)
INTERNAL = ErrorCode("-32603", "Internal error", 500)


class Chart(Spec):
    """Bare results; failures by number, with the spec's words first in the message."""

    name = "chart"
    invalid = INVALID_PARAMS
    timeout = UNAVAILABLE
    unauthorized = UNAUTHORIZED
    internal = INTERNAL
    unavailable = UNAVAILABLE
    common = (UNAVAILABLE, INVALID_PARAMS, UNAUTHORIZED, INTERNAL)

    def tool(
        self,
        *,
        errors: tuple[ErrorCode, ...] = (),
        deadline_s: float = 10.0,
        effect: bool = False,
        idempotent: bool = False,
    ) -> Callable[[Handler], Contract]:
        """Declare a tool."""
        policy = Policy(deadline_s=deadline_s, effect=effect, idempotent=idempotent)
        return lambda handler: read(handler, dialect=self, policy=policy, errors=errors)

    def failure(self, call: Any, error: ToolError) -> Answer | RpcFailure:
        code = error.code
        message = f"{code.description}: {error.message}"
        if call.modern or call.runtime.options.get("chart_errors") == "result":
            body = {"code": int(code.code), "message": message, "data": error.details}
            return Answer(body, is_error=True, status=code.status, code=code.code)
        return RpcFailure(int(code.code), message, error.details, code.status, code.code)

    def code_of(self, contract: Contract, error: SourceError) -> ErrorCode:
        """Also where a feed does not let us in: that is no fault of the request."""
        return self.unavailable


chart = Chart()
