"""Plain calls: a `tools/call` that needs no stream and is right in every respect is answered at once, as one JSON body.

The SDK would give each a stream or two, several tasks and up to five walks over the result. What is anything but plain
(a refusal, a progress token, a tool that may take long and needs the SDK's keep-alive pings) goes the SDK's way, so all
refusals are its own, word for word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as t
import orjson
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, X_MCP_HEADER_KEY, InboundModernRoute
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Address, Headers

from quantdeck.core.call import Progress
from quantdeck.core.wire import encode
from quantdeck.transports.asgi import reply, while_connected
from quantdeck.transports.lines import ID_IN_FLIGHT, usable_id, write_error
from quantdeck.transports.mcp import Endpoint, is_valid, is_well_formed
from quantdeck.transports.sdk_seams_http import (
    REQUEST_CANCELLED,
    classify_inbound_request,
    find_duplicated_routing_header,
    validate_mcp_param_headers,
)
from quantdeck.transports.sessions import cancellable, in_flight

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import Receive, Scope, Send

    from quantdeck.core.contract import Contract

__all__ = ["PlainCall", "PlainCalls"]

LONG_S = 30.0
"""A tool that may take longer gets the SDK's stream, whose pings keep proxies from giving up on it."""


class Incoming:
    """A request as our code and the SDK's ask of it, with its headers decoded once; the first of a name counts."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        self.headers = dict(reversed(self.pairs))

    @property
    def client(self) -> Address | None:
        return Address(*self.scope["client"]) if self.scope.get("client") else None


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A call that has passed every check."""

    request_id: t.RequestId
    params: dict[str, Any]
    connection: Connection
    incoming: Incoming


class PlainCalls:
    """The plain ones among the calls of one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        # Only where a schema asks for a header is there one to compare; ours do not, and looking costs 15 us.
        schemas = {name: contract.input_schema for name, contract in endpoint.by_name.items()}
        self._mirrored = {
            name: schema for name, schema in schemas.items() if X_MCP_HEADER_KEY.encode() in encode(schema)
        }

    def modern(self, scope: Scope, body: bytes) -> PlainCall | None:
        """A 2026-07-28 call, held against its headers by the SDK's own rules."""
        incoming = Incoming(scope)
        message = self._read(incoming.headers, body)
        if message is None or find_duplicated_routing_header(incoming.pairs):
            return None
        route = classify_inbound_request(message, headers=incoming.headers)
        if not isinstance(route, InboundModernRoute) or self._mirrored_wrongly(scope, message["params"]):
            return None
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        return _checked(message, connection, incoming)

    def legacy(self, scope: Scope, body: bytes, connection: Connection) -> PlainCall | None:
        """A call by an older client, on this connection."""
        incoming = Incoming(scope)
        message = self._read(incoming.headers, body)
        return None if message is None else _checked(message, connection, incoming)

    def _read(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any] | None:
        if not (_is_json(headers.get("content-type", "")) and _takes_both(headers.get("accept", ""))):
            return None
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
        if type(message) is not dict or message.get("method") != "tools/call" or message.get("jsonrpc") != "2.0":
            return None
        params: Any = message.get("params")
        if usable_id(message.get("id")) is None or not is_well_formed(params):
            return None
        contract = self._endpoint.by_name.get(params["name"])
        return message if contract is not None and self._is_plain(contract, params) else None

    def _is_plain(self, contract: Contract, params: Mapping[str, Any]) -> bool:
        asked = contract.injected.values()
        if "progressToken" in (params.get("_meta") or {}) and Progress in asked:
            return False
        if any(getattr(kind, "needs_stream", False) for kind in asked):  # it talks to the client on its way
            return False
        deadline_s = self._endpoint.app.runtime.deadline_s.get(contract.name, contract.policy.deadline_s)
        return 0 < deadline_s <= LONG_S

    def _mirrored_wrongly(self, scope: Scope, params: Mapping[str, Any]) -> bool:
        schema = self._mirrored.get(params["name"])
        arguments = params.get("arguments") or {}
        return schema is not None and validate_mcp_param_headers(schema, arguments, Headers(scope=scope)) is not None

    async def answer(
        self,
        call: PlainCall,
        receive: Receive,
        send: Send,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Run it and answer; a client that leaves cancels it, where it may be cancelled."""
        if in_flight(call.connection, call.request_id):  # else neither could be cancelled for sure
            await reply(send, 400, write_error(call.request_id, t.INVALID_REQUEST, ID_IN_FLIGHT))
            return
        status, outcome = 200, {"error": {"code": REQUEST_CANCELLED, "message": "Request cancelled"}}
        with cancellable(call.connection, call.request_id) as scope, while_connected(receive, scope):
            try:
                outcome = {"result": await self._endpoint.answer(_context(call), raw=True)}
            except MCPError as error:
                outcome = {"error": error.error.model_dump(exclude_none=True)}
                if call.connection.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    status = ERROR_CODE_HTTP_STATUS.get(error.error.code, 200)
        body = encode({"jsonrpc": "2.0", "id": call.request_id, **outcome})
        await reply(send, status, body, [(b"content-type", b"application/json"), *headers])


def _checked(message: dict[str, Any], connection: Connection, incoming: Incoming) -> PlainCall | None:
    if not is_valid(connection.protocol_version, message["params"]):
        return None
    return PlainCall(message["id"], message["params"], connection, incoming)


@lru_cache(maxsize=64)
def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"


@lru_cache(maxsize=64)
def _takes_both(accept: str) -> bool:
    """Only the usual spellings: the SDK reads the rest."""
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return "*/*" in kinds or kinds >= {"application/json", "text/event-stream"}


def _context(call: PlainCall) -> ServerRequestContext[Any, Any]:
    return ServerRequestContext(
        session=ServerSession(_NoStream(call.request_id), call.connection),
        lifespan_context=None,
        protocol_version=call.connection.protocol_version,
        method="tools/call",
        params=call.params,
        request_id=call.request_id,
        request=call.incoming,
    )


_OVER_HTTP = TransportContext(kind="streamable-http", can_send_request=False)


class _NoStream:
    """What a tool can reach of a call that is answered in one piece: nothing goes out before the answer."""

    transport = _OVER_HTTP
    can_send_request = False
    message_metadata = None

    def __init__(self, request_id: t.RequestId | None) -> None:
        self.request_id = request_id
        self.cancel_requested = anyio.Event()

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        """Nobody is listening yet."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Nobody has asked."""
