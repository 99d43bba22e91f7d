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

__all__ = [
    "Busy",
    "DeclarationError",
    "Denied",
    "ErrorCode",
    "NotConfigured",
    "NotInPast",
    "QueryFailed",
    "RejectedValue",
    "Rejects",
    "SourceError",
    "ToolError",
    "Unreachable",
]


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code that a spec promises, and what its table says of it."""

    code: str
    description: str
    status: int = 500
    """The HTTP status it has over REST."""
    retry: bool = False
    """Whether the same call can succeed later."""

    def __call__(self, message: str, /, **details: Any) -> ToolError:
        """The error to raise: a sentence that the caller can act on, and the facts behind it."""
        return ToolError(self, message, details)


class ToolError(Exception):
    """A failure the caller is meant to read."""

    def __init__(self, code: ErrorCode, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details or {}


class RejectedValue(ValueError):  # noqa: N818 - pydantic validators must raise a ValueError
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
        self.message = message
        self.source = source
        self.details = details


class Unreachable(SourceError):
    """No connection to be had."""


class QueryFailed(SourceError):
    """The source refused or broke off the question."""


class Denied(SourceError):
    """Bad credentials, or no right to do this."""


class Busy(SourceError):
    """Reached, but it cannot take more now."""


class NotConfigured(SourceError):
    """No setting says where this source is."""


class NotInPast(SourceError):
    """What was asked cannot be known as of the fixed clock."""


class DeclarationError(TypeError):
    """A tool, server or dialect is declared wrongly."""
