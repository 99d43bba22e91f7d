"""The catalog's REST facade: the same tools through the same pipeline, as plain POSTs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from quantdeck.core.wire import Answer, RpcFailure, encode
from quantdeck.dialects.catalog import UNKNOWN_TOOL
from quantdeck.dialects.replies import smaller_form
from quantdeck.transports.asgi import (
    BadRequest,
    Bounds,
    Refused,
    catalog_error,
    correlation_id,
    header,
    headers_of,
    read_body,
    reply,
    tell_refused,
    while_connected,
)
from quantdeck.transports.mcp import UPSTREAM_HEADER
from quantdeck.transports.merging import merged

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from quantdeck.app import App
    from quantdeck.core.call import Caller
    from quantdeck.core.contract import Contract
    from quantdeck.core.server import Server

__all__ = ["Rest"]

_JSON = (b"content-type", b"application/json")
_MAX_KEY_CHARS = 255


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a body asks for."""

    name: str
    arguments: dict[str, Any]
    correlation_id: str
    idempotency_key: str | None


class Rest:
    """`POST /mcp/tools/call` and `POST /mcp/tools/list`."""

    def __init__(self, app: App, servers: tuple[Server, ...], bounds: Bounds) -> None:
        self._app = app
        self._bounds = bounds
        self._tools = [(app.server_of(c), encode(_described(c))) for c in merged(servers).tools]

    async def list(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        """Every tool that the caller may see, as a bare list."""
        if await read_body(scope, receive, self._bounds) is None:
            return
        shown = [orjson.Fragment(tool) for server, tool in self._tools if caller.sees(server)]
        await reply(send, 200, orjson.dumps(shown))

    async def call(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        """One call, in the envelope and with the status of its spec."""
        body = await read_body(scope, receive, self._bounds)
        if body is None:
            return
        asked = _read(scope, body)
        echoed = (b"x-correlation-id", asked.correlation_id.encode())
        contract = self._app.tool(asked.name)
        if contract is None:
            sentence = f"Tool not found: {asked.name[:100]}; POST /mcp/tools/list names those there are"
            error = catalog_error(UNKNOWN_TOOL.code, sentence, asked.correlation_id, asked.name[:100])
            tell_refused(scope, UNKNOWN_TOOL.code, sentence, asked.correlation_id)
            await reply(send, UNKNOWN_TOOL.status, error, [_JSON, echoed])
            return
        with anyio.CancelScope() as client, while_connected(receive, client):
            outcome = await self._app.call(contract, asked.arguments, caller=caller, **_facts(scope, body, asked))
        if client.cancelled_caught:
            return
        if isinstance(outcome, RpcFailure):
            told = {"error": {"code": outcome.number, "message": outcome.message, "data": outcome.data}}
            outcome = Answer(told, status=outcome.status)
        headers = [_JSON, echoed, *headers_of(outcome.headers)]
        if said := smaller_form(contract, asked.arguments, outcome, self._app.settings.reply_tokens):
            headers.append((b"x-quantdeck-advice", said.encode("ascii")))
        await reply(send, outcome.status, outcome.encoded, headers)


def _described(contract: Contract) -> dict[str, Any]:
    return {
        "name": contract.name,
        "description": contract.description,
        "inputSchema": contract.input_schema,
        "outputSchema": contract.output_schema,
    }


def _facts(scope: Scope, body: bytes, asked: _Asked) -> dict[str, Any]:
    return {
        "transport": "rest",
        "correlation_id": asked.correlation_id,
        "idempotency_key": asked.idempotency_key,
        "upstream_token": header(scope, UPSTREAM_HEADER.encode()),
        "user_agent": header(scope, b"user-agent"),
        "peer": scope["client"][0] if scope["client"] else None,
        "request_bytes": len(body),
    }


def _read(scope: Scope, body: bytes) -> _Asked:
    kind = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "Invalid request: the body must be sent as Content-Type application/json")
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise BadRequest("Invalid arguments: the body is not valid JSON") from None
    name = _member(message, "name", str, required=True)
    metadata = _member(message, "metadata", dict) or {}
    corr_id = _member(metadata, "corr_id", str) or header(scope, b"x-correlation-id")
    key = _member(metadata, "idempotency_key", str)
    key = header(scope, b"idempotency-key") if key is None else key
    if key is not None and not 0 < len(key) <= _MAX_KEY_CHARS:
        raise BadRequest(f"Invalid arguments: an idempotency key has 1 to {_MAX_KEY_CHARS} characters")
    return _Asked(name, _member(message, "arguments", dict) or {}, correlation_id(corr_id), key)


_KINDS: dict[type, str] = {str: "a string", dict: "an object"}


def _member(message: Any, name: str, kind: type, *, required: bool = False) -> Any:
    if not isinstance(message, dict):
        raise BadRequest("Invalid arguments: the body must be an object with name and arguments")
    value = message.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, kind):
        raise BadRequest(f"Invalid arguments: {name} must be {_KINDS[kind]}")
    return value
