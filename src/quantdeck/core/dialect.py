"""What a spec may decide. A dialect overrides as little of this as its spec demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from quantdeck.core.errors import Denied, ErrorCode, SourceError, ToolError
from quantdeck.core.wire import Answer, RpcFailure

if TYPE_CHECKING:
    from quantdeck.core.call import Call
    from quantdeck.core.contract import Contract


class Dialect:
    """Envelope, spelling and codes of one spec. This base class is the plainest there is."""

    name: ClassVar[str]
    invalid: ClassVar[ErrorCode]  # arguments outside the published schema
    timeout: ClassVar[ErrorCode]
    unauthorized: ClassVar[ErrorCode]
    internal: ClassVar[ErrorCode]
    unavailable: ClassVar[ErrorCode]  # a source that does not answer
    limited: ClassVar[ErrorCode | None] = None
    conflict: ClassVar[ErrorCode | None] = None
    common: ClassVar[tuple[ErrorCode, ...]] = ()  # what every tool of this spec may answer
    numerals: ClassVar[bool] = False  # whether "7" is accepted for 7
    refresh: ClassVar[str] = ""  # the argument that asks past the cache

    def spell(self, name: str) -> str:
        """A Python parameter's name on the wire. A trailing underscore avoids a keyword."""
        return name.rstrip("_")

    def input_schema(self, arguments: type[BaseModel]) -> dict[str, Any]:
        return arguments.model_json_schema()

    def output_schema(self, returns: Any) -> dict[str, Any]:
        """Of the whole answer, its envelope included."""
        return TypeAdapter(returns).json_schema(mode="serialization")

    def success(self, call: Call, data: Any) -> Answer:
        return Answer(data, meta=self.meta(call))

    def failure(self, call: Call, error: ToolError) -> Answer | RpcFailure:
        raise NotImplementedError

    def refuse(self, contract: Contract, error: ValidationError) -> ToolError:
        """What is wrong with the arguments."""
        raise NotImplementedError

    def translate(self, contract: Contract, error: SourceError) -> ToolError:
        """Which of this spec's codes a source's failure is. Our sentence goes with it."""
        return ToolError(self.code_of(contract, error), error.message, dict(error.details))

    def code_of(self, contract: Contract, error: SourceError) -> ErrorCode:
        """The code alone, for a dialect that files some failures elsewhere."""
        return self.unauthorized if isinstance(error, Denied) else self.unavailable

    def meta(self, call: Call) -> dict[str, Any]:
        """What goes beside the result in `_meta`."""
        return {"quantdeck/source": call.source} if call.source else {}
