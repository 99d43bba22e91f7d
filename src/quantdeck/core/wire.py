"""What leaves a dialect: an answer, or a failure of the JSON-RPC call itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import orjson

__all__ = ["Answer", "RpcFailure", "canonical", "encode"]

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


@dataclass(frozen=True)
class Answer:
    """One finished call, in its spec's own shape.

    `body` is everything a spec's envelope holds. `meta` goes beside it where the transport has a
    place for it (`_meta`), `status` and `headers` where it is HTTP. `text` replaces the encoded body
    as the text channel, for the spec whose failures are plain sentences.
    """

    body: Any
    is_error: bool = False
    status: int = 200
    code: str | None = None
    text: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] | None = None
    """The MCP result itself, for what is not JSON: content blocks, a question back to the client."""

    @cached_property
    def encoded(self) -> bytes:
        """The body as JSON, once."""
        return encode(self.body)


@dataclass(frozen=True, slots=True)
class RpcFailure:
    """A failed call as a JSON-RPC error, for the specs that number their failures so."""

    number: int
    message: str
    data: Any = None
    status: int = 500
    code: str | None = None


def encode(value: Any) -> bytes:
    """Compact JSON. NaN and the infinities become null; times end in Z."""
    return orjson.dumps(value, _plain, _OPTIONS)


def canonical(value: Any) -> bytes:
    """JSON in which equal values are equal bytes, for keys and fingerprints."""
    return orjson.dumps(value, _plain, _OPTIONS | orjson.OPT_SORT_KEYS)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):  # a subclass, which orjson leaves to us
        return datetime.combine(value.date(), value.time(), value.tzinfo)
    raise TypeError(f"{type(value).__name__} has no JSON")
