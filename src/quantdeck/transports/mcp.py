"""Our servers as the SDK's low-level `Server`, for both protocol eras. No logic: it carries.

`tools/call` is answered in the SDK's middleware with a finished result; see `sdk_seams` for why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Any
from uuid import uuid4

import mcp_types as t
import orjson
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions
from mcp.server.lowlevel import Server as SdkServer
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request
from pydantic import ValidationError

from quantdeck import __version__, listing
from quantdeck.app import App
from quantdeck.core.call import Caller, Progress
from quantdeck.core.contract import Contract
from quantdeck.core.errors import SourceError
from quantdeck.core.server import Complete, Resource, ResourceTemplate, Server
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects.replies import smaller_form
from quantdeck.dialects.spec import Spec
from quantdeck.transports.merging import merged
from quantdeck.transports.sdk_seams import accepts_calls, connection_of, is_modern, no_tracing
from quantdeck.transports.sessions import Sessions
from quantdeck.transports.watchers import MAX_WATCHED, Watchers, notifier

__all__ = ["CALLER_KEY", "UPSTREAM_HEADER", "Endpoint", "is_valid", "is_well_formed", "mcp_server"]

log = logging.getLogger(__name__)

CALLER_KEY = "quantdeck.caller"
"""Where the HTTP transport leaves the caller in the request's scope."""

UPSTREAM_HEADER = "x-pyth-access-token"
"""Where a client over HTTP puts its own token for the service behind a tool; Authorization is ours."""

LIST_TTL_MS = 60_000
_OBJECT = (dict, NoneType)
_RESOURCE_NOT_FOUND = {False: -32002, True: t.INVALID_PARAMS}
_NUMBERS = {400: t.INVALID_PARAMS, 422: t.INVALID_PARAMS}
_METHODS_LISTED: tuple[CacheableMethod, ...] = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
)


class _Sdk(SdkServer[Any]):
    """Says `listChanged` over HTTP sessions too, where the SDK would not."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        return super().create_initialization_options(*(args or (NotificationOptions(True, True, True),)), **kwargs)


def mcp_server(
    app: App, servers: tuple[Server, ...], watchers: Watchers, *, raw: bool = False, dotted: bool = False
) -> SdkServer[Any]:
    """One endpoint that offers `servers`.

    `raw` where the transport encodes with orjson and takes encoded JSON as it is.
    """
    return Endpoint(app, merged(servers), watchers, raw=raw, dotted=dotted).sdk


class Endpoint:
    """What one MCP endpoint offers, and the SDK's server that offers it."""

    def __init__(self, app: App, server: Server, watchers: Watchers, *, raw: bool, dotted: bool) -> None:
        self.app = app
        self.server = server
        self.raw = raw
        self.process_id = uuid4().hex
        self.sessions = Sessions()
        self.tools = [(contract, _listed(contract, dotted=dotted)) for contract in server.tools]
        self.by_name = {name: c for c in server.tools for name in (c.name, c.listed)}
        self.methods = {c.name: c for c in server.tools if isinstance(c.dialect, Spec) and c.name in c.dialect.methods}
        self._watchers = watchers
        self.templates = [(_pattern(offer.uri_template), offer) for offer in server.templates]
        self.sdk = self._sdk()

    def _sdk(self) -> SdkServer[Any]:
        offers: dict[str, Any] = {}
        if self.server.resources or self.server.templates:
            offers |= {
                "on_list_resources": self.list_resources,
                "on_list_resource_templates": self.list_templates,
                "on_read_resource": self.read_resource,
                "on_subscribe_resource": self.subscribe,
                "on_unsubscribe_resource": self.unsubscribe,
                "on_subscriptions_listen": self.listen,
            }
        if self.server.prompts:
            offers |= {"on_list_prompts": self.list_prompts, "on_get_prompt": self.get_prompt}
        if any([*(offer.complete for offer in self.server.prompts), *(o.complete for o in self.server.templates)]):
            offers["on_completion"] = self.complete
        schemas = {name: contract.input_schema for name, contract in self.by_name.items()}
        sdk = _Sdk(
            self.server.name,
            version=__version__,
            instructions=self.server.instructions or None,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            get_tool_input_schema=schemas.get,
            cache_hints=dict.fromkeys(_METHODS_LISTED, CacheHint(ttl_ms=LIST_TTL_MS, scope="private")),
            **offers,
        )
        no_tracing(sdk)
        sdk.middleware.append(self.fast_path)
        return sdk

    # tools

    async def list_tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        del params
        return t.ListToolsResult(tools=[tool for contract, tool in self.tools if self._shows(ctx, contract)])

    async def fast_path(self, ctx: Any, call_next: Any) -> Any:
        """Answer `tools/call` with a finished result; everything else goes its usual way."""
        self.sessions.heed(ctx)
        plain = ctx.method == "tools/call" and accepts_calls(ctx) and is_well_formed(ctx.params)
        if plain and ctx.request is not None:
            # over HTTP strangers call: the SDK's whole check, not only what we rely on
            plain = is_valid(ctx.protocol_version, ctx.params)
        if plain:
            return await self.answer(ctx, raw=self.raw)
        with _contained(ctx):
            if ctx.method in self.methods and ctx.request_id is not None and accepts_calls(ctx):
                return await self._method(ctx, self.methods[ctx.method])
            return await call_next(ctx)

    async def _method(self, ctx: Any, contract: Contract) -> Any:
        """A tool that its spec calls by its name as well: its arguments are the params, its answer is the result."""
        given = {name: value for name, value in (ctx.params or {}).items() if name != "_meta"}
        data = self._data(ctx, await self._run(ctx, contract, given))
        return {**data, "resultType": "complete"} if is_modern(ctx) else data

    async def answer(self, ctx: Any, *, raw: bool) -> dict[str, Any]:
        """The result of a well-formed `tools/call`; `raw` where its encoder takes encoded JSON as it is."""
        with _contained(ctx):
            return await self._called(ctx, ctx.params["name"], ctx.params.get("arguments") or {}, raw=raw)

    async def call_tool(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        """What the fast path leaves to the SDK's checks and they let pass: the later rounds of a question."""
        return await self._called(ctx, params.name, params.arguments or {}, raw=False)

    async def _called(self, ctx: Any, name: str, arguments: Mapping[str, Any], *, raw: bool) -> dict[str, Any]:
        contract = self.by_name.get(name)
        if contract is None:
            raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {name[:100]}; tools/list names those there are")
        outcome = await self._run(ctx, contract, arguments)
        if isinstance(outcome, RpcFailure):
            raise MCPError(outcome.number, outcome.message, outcome.data)
        result = self._result(ctx, outcome, raw=raw)
        said = smaller_form(contract, arguments, outcome, self.app.settings.reply_tokens)
        if said is not None and outcome.raw is None:
            result["content"].append({"type": "text", "text": said})  # of its own, so that the first stays JSON
        return result

    def _result(self, ctx: Any, answer: Answer, *, raw: bool) -> dict[str, Any]:
        result = _told(answer, raw=raw) if answer.raw is None else dict(answer.raw)
        meta = dict(answer.meta)
        if is_modern(ctx):
            result.setdefault("resultType", "complete")
            meta[t.SERVER_INFO_META_KEY] = self.sdk.server_info_stamp
        if meta:
            result["_meta"] = meta
        return result

    async def _run(self, ctx: Any, contract: Contract, arguments: Mapping[str, Any]) -> Answer | RpcFailure:
        meta = (ctx.params or {}).get("_meta") or {}
        request = ctx.request
        progress = Progress(ctx.session.report_progress) if "progressToken" in meta else Progress()
        headers = request.headers if request is not None else {}
        return await self.app.call(
            contract,
            arguments,
            caller=self._caller(ctx),
            transport="stdio" if request is None else "http",
            method=ctx.method,
            modern=is_modern(ctx),
            progress=progress,
            session_id=self.process_id if request is None else connection_of(ctx).session_id,
            correlation_id=headers.get("x-correlation-id") or meta.get("quantdeck/corr_id"),
            idempotency_key=headers.get("idempotency-key") or meta.get("quantdeck/idempotency_key"),
            upstream_token=headers.get(UPSTREAM_HEADER),
            user_agent=headers.get("user-agent"),
            peer=request.client.host if request is not None and request.client else None,
            request_bytes=_size(arguments),
            notify=notifier(ctx),
            context=ctx,
        )

    def _caller(self, ctx: Any) -> Caller:
        request = ctx.request
        caller: Caller | None = None if request is None else request.scope.get(CALLER_KEY)
        return caller or self.app.local

    def _shows(self, ctx: Any, contract: Contract) -> bool:
        return self._caller(ctx).sees(self.app.server_of(contract))

    # resources

    async def list_resources(self, ctx: Any, params: Any) -> t.ListResourcesResult:
        del params
        found = [
            t.Resource(
                uri=offer.uri, name=offer.read.name, description=offer.read.description, mime_type=offer.mime_type
            )
            for offer in self.server.resources
            if self._shows(ctx, offer.read)
        ]
        return t.ListResourcesResult(resources=found)

    async def list_templates(self, ctx: Any, params: Any) -> t.ListResourceTemplatesResult:
        del params
        found = [
            t.ResourceTemplate(
                uri_template=offer.uri_template,
                name=offer.read.name,
                description=offer.read.description,
                mime_type=offer.mime_type,
            )
            for offer in self.server.templates
            if self._shows(ctx, offer.read)
        ]
        return t.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(self, ctx: Any, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        uri = str(params.uri)
        offer, arguments = self._resource(ctx, uri)
        data = self._data(ctx, await self._run(ctx, offer.read, arguments))
        text = data if isinstance(data, str) else orjson.dumps(data).decode()
        binary = isinstance(offer, Resource) and offer.binary
        return t.ReadResourceResult(contents=[_contents(uri, text, offer.mime_type, binary=binary)])

    async def subscribe(self, ctx: Any, params: t.SubscribeRequestParams) -> t.EmptyResult:
        self._resource(ctx, str(params.uri))
        self._watchers.watch(ctx, str(params.uri))
        return t.EmptyResult()

    async def unsubscribe(self, ctx: Any, params: t.UnsubscribeRequestParams) -> t.EmptyResult:
        self._watchers.unwatch(ctx, str(params.uri))
        return t.EmptyResult()

    async def listen(self, ctx: Any, params: t.SubscriptionsListenRequestParams) -> t.SubscriptionsListenResult:
        wanted = params.notifications
        uris = wanted.resource_subscriptions or []
        if len(uris) > MAX_WATCHED:
            raise MCPError(t.INVALID_PARAMS, f"Too many subscriptions: a stream may have {MAX_WATCHED}")
        # what it may not read it may not watch either; the acknowledgement says which are left
        may = [uri for uri in uris if self._offer(ctx, uri) is not None]
        heard = wanted.model_copy(update={"resource_subscriptions": may or None})
        return await self._watchers.listen(ctx, params.model_copy(update={"notifications": heard}))

    def _resource(self, ctx: Any, uri: str) -> tuple[Resource | ResourceTemplate, Mapping[str, Any]]:
        """What offers the resource at a URI, and the arguments that its template finds there."""
        offer = self._offer(ctx, uri)
        if offer is None:
            raise MCPError(_RESOURCE_NOT_FOUND[is_modern(ctx)], f"Resource not found: {uri[:200]}", {"uri": uri})
        return offer

    def _offer(self, ctx: Any, uri: str) -> tuple[Resource | ResourceTemplate, Mapping[str, Any]] | None:
        for offer in self.server.resources:
            if offer.uri == uri and self._shows(ctx, offer.read):
                return offer, {}
        for pattern, template in self.templates:
            if (arguments := pattern.match(uri)) is not None and self._shows(ctx, template.read):
                return template, arguments
        return None

    def _data(self, ctx: Any, outcome: Answer | RpcFailure) -> Any:
        """What was answered; a failure becomes the protocol's own error, which for these has no other shape."""
        if isinstance(outcome, RpcFailure):
            raise MCPError(outcome.number, outcome.message, outcome.data)
        if outcome.is_error:
            number = _RESOURCE_NOT_FOUND[is_modern(ctx)] if outcome.status == 404 else _NUMBERS.get(outcome.status)
            raise MCPError(number or t.INTERNAL_ERROR, outcome.text or outcome.encoded.decode())
        return orjson.loads(outcome.encoded)

    # prompts and completion

    async def list_prompts(self, ctx: Any, params: Any) -> t.ListPromptsResult:
        del params
        shown = [offer.render for offer in self.server.prompts if self._shows(ctx, offer.render)]
        return t.ListPromptsResult(prompts=[_prompt(contract) for contract in shown])

    async def get_prompt(self, ctx: Any, params: t.GetPromptRequestParams) -> t.GetPromptResult | t.InputRequiredResult:
        found = [offer.render for offer in self.server.prompts if offer.render.name == params.name]
        if not found:
            raise MCPError(t.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")
        outcome = await self._run(ctx, found[0], params.arguments or {})
        if isinstance(outcome, Answer) and outcome.raw is not None:
            return t.InputRequiredResult.model_validate(outcome.raw)
        data = self._data(ctx, outcome)
        messages = [{"role": "user", "content": {"type": "text", "text": data}}] if isinstance(data, str) else data
        return t.GetPromptResult.model_validate({"description": found[0].description, "messages": messages})

    async def complete(self, ctx: Any, params: t.CompleteRequestParams) -> t.CompleteResult:
        contract, completers = self._completers(ctx, params.ref)
        complete, values = completers.get(params.argument.name), []
        if isinstance(complete, Contract):
            begun = {complete.parameters[0].wire: params.argument.value}
            values = self._data(ctx, await self._run(ctx, complete, begun))
        elif complete is not None:
            values = await self._completed(contract, complete(params.argument.value))
        shown = values[:100]  # the protocol's limit
        return t.CompleteResult(
            completion=t.Completion(values=shown, total=len(values), has_more=len(values) > len(shown))
        )

    async def _completed(self, contract: Contract, values: Awaitable[Sequence[str]]) -> list[str]:
        limit_s = contract.policy.deadline_s
        try:
            async with asyncio.timeout(limit_s or None):
                return list(await values)
        except TimeoutError:
            raise MCPError(t.INTERNAL_ERROR, f"Timeout after {round(limit_s * 1000)} ms; try again") from None
        except SourceError as error:
            log.warning("source_failed", extra={"fields": {"completing": contract.name, "why": error}})
            raise MCPError(t.INTERNAL_ERROR, error.message) from None

    def _completers(self, ctx: Any, ref: Any) -> tuple[Contract, Mapping[str, Complete]]:
        """What completes the arguments of this prompt or template. Its values are data, so not for everyone."""
        if isinstance(ref, t.PromptReference):
            found = [(o.render, o.complete) for o in self.server.prompts if o.render.name == ref.name]
        else:
            found = [(o.read, o.complete) for o in self.server.templates if o.uri_template == str(ref.uri)]
        may = [offer for offer in found if self._shows(ctx, offer[0]) and self._caller(ctx).may("read")]
        if not may:
            raise MCPError(t.INVALID_PARAMS, "There is no such prompt or resource template to complete for")
        return may[0]


def is_well_formed(params: Any) -> bool:
    """What the SDK would let pass as well; the rest it refuses in its own words."""
    return (
        isinstance(params, dict)
        and isinstance(params.get("name"), str)
        and isinstance(params.get("arguments"), _OBJECT)
        and isinstance(params.get("_meta"), _OBJECT)
        and params.keys().isdisjoint(("inputResponses", "requestState"))
    )


def is_valid(protocol_version: str, params: Mapping[str, Any]) -> bool:
    """Whether the SDK finds nothing wrong with a `tools/call`, envelope included."""
    try:
        validate_client_request("tools/call", protocol_version, dict(params))
    except (KeyError, ValidationError):
        return False
    return True


def _size(arguments: Mapping[str, Any]) -> int:
    try:
        return len(orjson.dumps(arguments))
    except orjson.JSONEncodeError:  # too deep, or an integer beyond 64 bits: the tool's validation says so
        return 0


@contextmanager
def _contained(ctx: Any) -> Iterator[None]:
    """Let only errors with our own words out: of any other the SDK would tell a legacy client the text."""
    try:
        yield
    except (MCPError, ValidationError):  # a ValidationError is the SDK's, about params: it answers -32602
        raise
    except Exception:
        log.exception("unexpected", extra={"fields": {"method": ctx.method}})
        unforeseen = "The server failed in a way it did not foresee; its log has the reason"
        raise MCPError(t.INTERNAL_ERROR, unforeseen) from None


def _pattern(uri_template: str) -> Any:
    from mcp.shared.uri_template import UriTemplate  # only where there are templates

    return UriTemplate.parse(uri_template)


def _listed(contract: Contract, *, dotted: bool) -> t.Tool:
    return t.Tool(
        name=contract.name if dotted else contract.listed,
        title=listing.title(contract),
        description=contract.description,
        input_schema=contract.input_schema,
        output_schema=contract.output_schema or None,  # none where the answer is no JSON
        annotations=t.ToolAnnotations.model_validate(listing.hints(contract)),
        meta={"quantdeck/name": contract.name} if contract.name != contract.listed else None,
    )


def _told(answer: Answer, *, raw: bool) -> dict[str, Any]:
    encoded = answer.encoded
    result: dict[str, Any] = {"content": [{"type": "text", "text": answer.text or encoded.decode()}]}
    if answer.is_error:
        result["isError"] = True
    else:
        result["structuredContent"] = orjson.Fragment(encoded) if raw else orjson.loads(encoded)
    return result


def _contents(uri: str, text: str, mime_type: str, *, binary: bool) -> Any:
    if binary:
        return t.BlobResourceContents(uri=uri, mime_type=mime_type, blob=text)
    return t.TextResourceContents(uri=uri, mime_type=mime_type, text=text)


def _prompt(contract: Contract) -> t.Prompt:
    properties = contract.input_schema["properties"]
    arguments = [
        t.PromptArgument(
            name=parameter.wire,
            description=properties[parameter.wire].get("description"),
            required=parameter.required,
        )
        for parameter in contract.parameters
    ]
    return t.Prompt(
        name=contract.name, title=listing.title(contract), description=contract.description, arguments=arguments
    )
