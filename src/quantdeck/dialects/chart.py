"""The dialect of the chart spec: bare results, and failures as JSON-RPC errors numbered from -32001.

Those numbers are off-policy in the newest protocol (docs/adr/0014-off-policy-codes.md), so the
setting `chart_errors` decides: `rpc` (default), `result` (always on modern connections), `strict`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from quantdeck.core.call import Call
from quantdeck.core.contract import Contract, Handler, Policy
from quantdeck.core.errors import ErrorCode, RejectedValue, Rejects, SourceError, ToolError
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects.declaring import read
from quantdeck.dialects.spec import Spec
from quantdeck.domain import symbols
from quantdeck.domain.timeframes import TIMEFRAMES

__all__ = [
    "INSUFFICIENT_DATA",
    "INVALID_PARAMS",
    "INVALID_SYMBOL",
    "INVALID_TIMEFRAME",
    "LENGTHS",
    "UNAVAILABLE",
    "ChartTimeframe",
    "Manner",
    "Symbol",
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
    methods = frozenset({"subscribe_alerts"})
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

    def readable(self) -> Callable[[Handler], Contract]:
        """Declare what a resource is made of."""
        return lambda handler: read(handler, dialect=self, policy=Policy(deadline_s=10.0), is_tool=False)

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

LENGTHS = {"1min": TIMEFRAMES["1m"], "5min": TIMEFRAMES["5m"], "15min": TIMEFRAMES["15m"], "1hour": TIMEFRAMES["1h"]}
"""By the spec's names."""


def _symbol(text: str) -> str:
    try:
        symbol = symbols.instrument(text)
    except symbols.UnknownSymbolError as error:
        found = {"candidates": list(error.candidates)} if error.candidates else {}
        raise RejectedValue(str(error), symbol=text[:80], **found) from None
    if symbols.asset_class(symbol) not in ("stock", "crypto"):
        raise RejectedValue("is neither a stock nor a coin", symbol=symbol)
    return symbol


Symbol = Annotated[
    str, AfterValidator(_symbol), Rejects(INVALID_SYMBOL), Field(description="Stock or crypto pair: AAPL, BTC/USD")
]
"""In any usual spelling; the tool gets the canonical one."""

ChartTimeframe = Annotated[
    Literal["1min", "5min", "15min", "1hour"], Rejects(INVALID_TIMEFRAME), Field(description="Length of a bar")
]


@dataclass(frozen=True, slots=True)
class Manner:
    """How an answer is to be given: whether too few bars are a failure, what was negotiated, and whence it came."""

    call: Call

    @classmethod
    def from_call(cls, call: Call) -> Manner:
        return cls(call)

    @property
    def is_strict(self) -> bool:
        return bool(self.call.runtime.options.get("chart_errors") == "strict")

    @property
    def protocol(self) -> str:
        """The protocol's version, where one was negotiated."""
        return getattr(self.call.context, "protocol_version", None) or "none"

    def came_from(self, source: str) -> str:
        """Say which of several stores it was."""
        self.call.source = source
        return source
