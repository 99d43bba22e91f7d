"""What an engine says, read strictly: it may be in the hands of the code it runs."""

from __future__ import annotations

import re
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from collections.abc import Iterable
from typing import Any

import orjson

__all__ = ["LONGEST_LINE", "Frame", "TooDeepError", "ViolationError", "next_frame", "read_text"]

LONGEST_LINE = 2 * 2**20
_DEEPEST = 100

Frame = tuple[Any, ...]

_SHAPES: dict[str, tuple[type, ...]] = {
    "ready": (int,),
    "call": (int, str, str),
    "log": (str,),
    "result": (str,),
    "failed": (str, str),
}

_ALONE = re.compile(r"\\(?:u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL)


class TooDeepError(Exception):
    """Data that is nested deeper than our answers can be."""


class ViolationError(Exception):
    """An engine that does not keep to the protocol is not to be talked to."""


async def next_frame(out: StreamReader) -> Frame | None:
    """The next frame; None at the end."""
    try:
        line = await out.readuntil(b"\n")
    except IncompleteReadError as error:
        if error.partial:
            raise ViolationError("half a line") from None
        return None
    except LimitOverrunError:
        raise ViolationError("a line without end") from None
    try:
        told = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise ViolationError("no JSON") from None
    if not isinstance(told, list) or not told or not isinstance(told[0], str) or told[0] not in _SHAPES:
        raise ViolationError("no frame")
    if tuple(map(type, told[1:])) != _SHAPES[told[0]]:
        raise ViolationError(f"not what {told[0]} holds")
    return tuple(told)


def read_text(text: str) -> Any:
    """JSON that was made by the code's own engine. Halves of characters, which no JSON of ours can hold, are marked."""
    if "\\u" in text:
        text = _ALONE.sub(lambda found: "\\ufffd" if len(found[0]) == 6 else found[0], text)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "depth limit" in str(error):
            raise TooDeepError from None
        raise ViolationError("no JSON within a frame") from None
    if _depth(value) > _DEEPEST:
        raise TooDeepError
    return value


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [one for held in level for one in _within(held)]
    return depth


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
