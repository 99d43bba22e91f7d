"""What can go wrong, in two families.

    Exception
    ├── ToolError            a failure that the caller reads: a declared code, our sentence, details
    ├── RejectedValue        a parameter's value is not acceptable; `validate` turns it into a code
    ├── SourceError          a source failed; the dialect says which of its codes that is
    │   ├── Unreachable      down, refused, no free connection in time
    │   ├── QueryFailed      it answered that it cannot
    │   ├── Denied           it does not let us in, or not do this
    │   ├── Busy             it is there but too loaded to take this on now
    │   ├── NotConfigured    nobody said where it is; the sentence names the setting
    │   └── NotInPast        the clock stands in the past and this has no past, or a later state only
    └── DeclarationError     a tool is declared wrongly; raised at import, names the tool and the fix

A sentence in here is our own and may reach a model. What a driver said stays in `__cause__`, for the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code that a spec promises, and what its table says of it."""

    code: str
    description: str
    status: int = 500  # over HTTP
    retry: bool = False  # whether the same call can succeed later

    def __call__(self, message: str, /, **details: Any) -> ToolError:
        """The error to raise: a sentence that the caller can act on, and the facts behind it."""
        return ToolError(self, message, details)


class ToolError(Exception):
    def __init__(self, code: ErrorCode, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details or {}


class RejectedValue(ValueError):
    """Raised by a parameter's own check. `details` go beside the message."""

    def __init__(self, message: str, /, **details: Any) -> None:
        super().__init__(message)
        self.details = details


@dataclass(frozen=True, slots=True)
class Rejects:
    """Marks a parameter: a bad value is this code, not the spec's general one."""

    code: ErrorCode


class SourceError(Exception):
    """A source could not answer. `source` is its name on the wire."""

    def __init__(self, message: str, /, *, source: str, **details: Any) -> None:
        super().__init__(message)
        self.message, self.source, self.details = message, source, details


# fmt: off
class Unreachable(SourceError): ...
class QueryFailed(SourceError): ...
class Denied(SourceError): ...
class Busy(SourceError): ...
class NotConfigured(SourceError): ...
class NotInPast(SourceError): ...
class DeclarationError(TypeError): ...
# fmt: on
