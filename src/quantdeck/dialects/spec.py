"""What our specs have in common: how a schema is published, and what is said of arguments that do not fit it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError

from quantdeck.core.contract import Contract
from quantdeck.core.dialect import Dialect
from quantdeck.core.errors import ToolError
from quantdeck.dialects import schemas
from quantdeck.dialects.refusals import refusal

__all__ = ["Spec"]


class Spec(Dialect):
    methods: ClassVar[frozenset[str]] = frozenset()
    """Tools that the spec calls as methods of JSON-RPC as well, by the same names."""

    def wrap(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The output schema of the whole answer, given that of its data."""
        return schema

    def input_schema(self, arguments: type[BaseModel]) -> dict[str, Any]:
        return schemas.input_schema(arguments)

    def output_schema(self, returns: Any) -> dict[str, Any]:
        return self.wrap(schemas.output_schema(returns))

    def refuse(self, contract: Contract, error: ValidationError) -> ToolError:
        return refusal(contract, error)
