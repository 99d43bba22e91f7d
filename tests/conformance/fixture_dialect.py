"""How the fixture's tools are declared and answer: with MCP results as they are, which may be questions back.

The real servers answer JSON and never ask, so what is in here is not in the program.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as t
from mcp.shared.exceptions import MCPDeprecationWarning

from quantdeck.core.call import Call
from quantdeck.core.contract import Contract, Handler, Policy
from quantdeck.core.errors import ErrorCode, ToolError
from quantdeck.core.wire import Answer, RpcFailure
from quantdeck.dialects.declaring import read
from quantdeck.dialects.spec import Spec
from quantdeck.transports.watchers import Watchers

__all__ = ["MISSING_CAPABILITY", "WATCHERS", "Client", "Listeners", "Result", "ask", "fixture", "text"]

INVALID = ErrorCode("INVALID", "The arguments do not fit", 400)
FAILED = ErrorCode("FAILED", "It did not work")
MISSING_CAPABILITY = ErrorCode("MISSING_CAPABILITY", "The client has not declared what this needs", 400)

WATCHERS = Watchers()

Result = dict[str, Any]
"""An MCP result as it goes out."""

ASKING_S = 60.0
"""Somebody has to be asked. Longer than a plain call, so it has a stream on which to ask."""


class Fixture(Spec):
    """MCP results as they are; what is no mapping is for resources and prompts."""

    name = "fixture"
    invalid = INVALID
    timeout = unauthorized = internal = unavailable = FAILED
    common = (INVALID, FAILED)

    def tool(self, *, asks: bool = False, errors: tuple[ErrorCode, ...] = ()) -> Callable[[Handler], Contract]:
        """Declare a tool; `asks` if it wants the client's stream while it runs."""
        policy = Policy(deadline_s=ASKING_S if asks else 20.0)
        return lambda handler: read(handler, dialect=self, policy=policy, errors=errors)

    def readable(self, handler: Handler) -> Contract:
        """What a resource or a prompt is made of."""
        return read(handler, dialect=self, policy=Policy(), is_tool=False)

    def wrap(self, schema: dict[str, Any]) -> dict[str, Any]:
        """No schema at all: content blocks have none."""
        del schema
        return {}

    def success(self, call: Call, data: Any) -> Answer:
        del call
        return Answer(None, raw=data) if isinstance(data, Mapping) else Answer(data)

    def failure(self, call: Call, error: ToolError) -> Answer | RpcFailure:
        del call
        if error.code is MISSING_CAPABILITY:
            return RpcFailure(t.MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, error.details)
        return Answer({"message": error.message}, is_error=True, code=error.code.code, text=error.message)


fixture = Fixture()


class Client:
    """Whoever calls, as far as the protocol lets a tool talk to them."""

    def __init__(self, context: Any) -> None:
        params = context.params or {}
        self.answers: Mapping[str, Any] = params.get("inputResponses") or {}
        self.state: str | None = params.get("requestState")
        self._context = context

    @classmethod
    def from_call(cls, call: Call) -> Client:
        return cls(call.context)

    def can(self, capability: str) -> bool:
        declared = self._context.session.client_capabilities
        return declared is not None and getattr(declared, capability) is not None

    async def elicit(self, question: str, form: dict[str, Any]) -> t.ElicitResult:
        found = await self._context.session.elicit_form(question, form, related_request_id=self._context.request_id)
        return t.ElicitResult.model_validate(found)

    async def sample(self, prompt: str) -> t.CreateMessageResult:
        content = t.TextContent(type="text", text=prompt)
        with warnings.catch_warnings(category=MCPDeprecationWarning, action="ignore"):
            found = await self._context.session.create_message(
                messages=[t.SamplingMessage(role="user", content=content)],
                max_tokens=100,
                related_request_id=self._context.request_id,
            )
        return t.CreateMessageResult.model_validate(found)

    async def log(self, sentence: str) -> None:
        with warnings.catch_warnings(category=MCPDeprecationWarning, action="ignore"):
            await self._context.session.send_log_message(
                "info", sentence, "fixture", related_request_id=self._context.request_id
            )


class Listeners:
    """Those who want to hear of changed lists."""

    @classmethod
    def from_call(cls, call: Call) -> Listeners:
        del call
        return cls()

    async def tell(self, event: Any) -> None:
        await WATCHERS.bus.publish(event)


def text(sentence: str) -> Result:
    return {"content": [{"type": "text", "text": sentence}]}


def ask(state: str | None = None, **questions: Any) -> Result:
    """The result that asks the client to answer and call again."""
    asked: Result = {"resultType": "input_required", "inputRequests": questions}
    return asked if state is None else {**asked, "requestState": state}
