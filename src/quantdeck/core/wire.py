"""What leaves a dialect: an answer, or a failure of the JSON-RPC call itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any

import orjson

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


@dataclass(frozen=True)
class Answer:
    """One finished call, in its spec's own shape."""

    body: Any  # everything that the envelope holds
    is_error: bool = False
    status: int = 200  # of HTTP, as `headers`
    code: str | None = None
    text: str | None = None  # in place of the encoded body as the text channel
    meta: Mapping[str, Any] = field(default_factory=dict)  # beside the body, where the transport has a place for it
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] | None = None  # the MCP result itself, for what is not JSON: blocks, a question back

    @cached_property
    def encoded(self) -> bytes:
        return encode(self.body)


@dataclass(frozen=True, slots=True)
class RpcFailure:
    """A failed call as a JSON-RPC error, for the specs that number their failures so."""

    number: int
    message: str
    data: Any = None
    status: int = 500
    code: str | None = None

    @property
    def encoded(self) -> bytes:
        return encode(self.data)


def encode(value: Any) -> bytes:
    """Compact JSON. NaN and the infinities become null; times end in Z. It is orjson that would load numpy to look."""
    return orjson.dumps(value, _plain, _OPTIONS | ("numpy" in sys.modules and orjson.OPT_SERIALIZE_NUMPY))


def canonical(value: Any) -> bytes:
    """JSON in which equal values are equal bytes, for keys and fingerprints."""
    return orjson.dumps(value, _plain, _OPTIONS | orjson.OPT_SORT_KEYS)


def digest(data: bytes | str) -> str:
    """Enough to tell two apart, and not to know either."""
    return sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):  # a subclass, which orjson leaves to us
        return datetime.combine(value.date(), value.time(), value.tzinfo)
    raise TypeError(f"{type(value).__name__} has no JSON")
