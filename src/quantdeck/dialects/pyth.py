"""The dialect of the Pyth Pro spec: bare results; failures in two tiers.

What better arguments would have prevented is a sentence the model reads; what is no proper request
at all is a JSON-RPC error. The sentences are the spec's own, so an error's text is the sentence and
nothing else; its kind stands in `_meta`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quantdeck.core.call import Call
from quantdeck.core.contract import Contract, Handler, Policy
from quantdeck.core.errors import ErrorCode, SourceError, ToolError
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects.declaring import read
from quantdeck.dialects.spec import Spec

__all__ = ["AUTH", "ENTITLEMENT", "INVALID_INPUT", "NOT_FOUND", "RATE_LIMITED", "UPSTREAM", "log_fields", "pyth"]

# the spec names its kinds of error but gives them no codes: these are its kinds
AUTH = ErrorCode("auth", "No token, or not a valid one", 401)
ENTITLEMENT = ErrorCode("entitlement", "A valid token that does not cover this", 403)
NOT_FOUND = ErrorCode("not_found", "No such feed, or nothing at that time", 404)
TIMEOUT = ErrorCode("timeout", "Pyth Pro API timed out", 504, retry=True)
INVALID_INPUT = ErrorCode("invalid_input", "A value that is not acceptable", 400)
UPSTREAM = ErrorCode("upstream", "Pyth Pro API failed", 502, retry=True)
RATE_LIMITED = ErrorCode("rate_limited", "Too many calls on the trial token", 429, retry=True)
INTERNAL = ErrorCode("internal", "Unexpected server error", 500)
MALFORMED = ErrorCode("-32602", "Invalid params", 400)

_TIMED_OUT = "Pyth Pro API timed out. Try again or reduce the number of feeds."


_KINDS = {code.code: code for code in (ENTITLEMENT, NOT_FOUND, TIMEOUT, INVALID_INPUT, RATE_LIMITED)}


class Pyth(Spec):
    """Sentences for models, JSON-RPC errors for malformed requests."""

    name = "pyth"
    invalid = MALFORMED
    timeout = TIMEOUT
    unauthorized = AUTH
    internal = INTERNAL
    unavailable = UPSTREAM
    limited = RATE_LIMITED
    common = (AUTH, ENTITLEMENT, NOT_FOUND, TIMEOUT, INVALID_INPUT, UPSTREAM, RATE_LIMITED, INTERNAL, MALFORMED)
    numerals = True

    def tool(
        self,
        *,
        errors: tuple[ErrorCode, ...] = (),
        deadline_s: float = 30.0,
        cache_s: float | None = None,
        per_minute: int | None = None,
    ) -> Callable[[Handler], Contract]:
        """Declare a tool. All of them ask a live service, and none changes anything."""
        policy = Policy(
            deadline_s=deadline_s,
            cache_s=cache_s,
            per_minute=per_minute,
            open_world=True,
            vary=("upstream",),
        )
        return lambda handler: read(handler, dialect=self, policy=policy, errors=errors)

    def readable(self, *, cache_s: float | None = None) -> Callable[[Handler], Contract]:
        """Declare what a resource or a prompt is made of."""
        policy = Policy(deadline_s=30.0, cache_s=cache_s, open_world=True, vary=("upstream",))
        return lambda handler: read(handler, dialect=self, policy=policy, is_tool=False)

    def code_of(self, contract: Contract, error: SourceError) -> ErrorCode:
        """The kind that the source names; of itself it knows better than its family."""
        return _KINDS.get(error.details.get("type", "")) or super().code_of(contract, error)

    def success(self, call: Call, data: Any) -> Answer:
        _tell(call)
        return super().success(call, data)

    def failure(self, call: Call, error: ToolError) -> Answer | RpcFailure:
        _tell(call)
        code = error.code
        if code is MALFORMED:
            return RpcFailure(-32602, error.message, error.details or None, code.status, code.code)
        sentence = _TIMED_OUT if code is TIMEOUT else error.message
        return Answer(
            {"error": {"type": code.code, "message": sentence, "details": error.details}},
            is_error=True,
            status=code.status,
            code=code.code,
            text=sentence,
            meta={"quantdeck/error": {"type": code.code, **error.details}},
        )


_MOST_LOGGED = 200


def log_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the spec's event says of feeds, as far as the bare arguments tell; a tool that gets to work knows better."""
    asked = {name: value[:_MOST_LOGGED] for name, value in arguments.items() if isinstance(value, (list, str))}
    symbols = [asked[name] for name in ("symbol",) if isinstance(asked.get(name), str)]
    symbols = symbols or [one[:_MOST_LOGGED] for one in _list(asked, "symbols") if isinstance(one, str)]
    spellings = ("ids", "priceFeedIds", "price_feed_ids")
    ids = [one for name in spellings for one in _list(asked, name) if isinstance(one, int)]
    return {
        "symbols_queried": symbols,
        "feed_ids_queried": ids,
        "asset_types": [asked["asset_type"]] if isinstance(asked.get("asset_type"), str) else [],
        "channel": asked["channel"] if isinstance(asked.get("channel"), str) else "",
        "properties": [one[:_MOST_LOGGED] for one in _list(asked, "properties") if isinstance(one, str)],
        "num_feeds": len(ids) or len(symbols),
        "num_feeds_returned": 0,
        "api_latency_ms": 0.0,
    }


def _list(asked: Mapping[str, Any], name: str) -> list[Any]:
    held = asked.get(name)
    return held if isinstance(held, list) else []


def _tell(call: Call) -> None:
    """Have every event say all that the spec's does: of a call that its arguments ended, and of a kept answer too."""
    if "num_feeds" not in call.notes:
        call.notes = log_fields(call.arguments) | call.notes
    if call.upstream_token is None:
        call.upstream_token = call.runtime.secrets.get("pyth", "").strip() or None


pyth = Pyth()
