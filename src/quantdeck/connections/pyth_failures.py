"""What Pyth's services refuse, and why, in our words.

What they say of a failure is plain text of theirs; it is shortened, and cleared of the token, before it is told on.
"""

from __future__ import annotations

import math
import re
from typing import Any

import orjson

from quantdeck.core.errors import Busy, Denied, QueryFailed, SourceError, Unreachable

__all__ = ["SOURCE", "InvalidToken", "NotEntitled", "Refused", "UnknownFeed", "clean_token", "failure"]

SOURCE = "pyth"

_MAX_REASON = 300

_MISSING = (
    "This tool requires a Pyth Pro access token. Set PYTH_PRO_ACCESS_TOKEN environment variable. "
    "Get a token at https://pyth.network/pricing"
)
_INVALID = "Your Pyth Pro access token is invalid or expired. Check your PYTH_PRO_ACCESS_TOKEN value."


class InvalidToken(Denied):
    """The token is missing, or none that the service knows."""

    def __init__(self, *, missing: bool = False) -> None:
        super().__init__(_MISSING if missing else _INVALID, source=SOURCE)


class NotEntitled(Denied):
    """The token is good, and does not cover a feed; `feed_id` where the service names it."""

    def __init__(self, reason: str, feed_id: int | None) -> None:
        told = f"Your Pyth Pro access token does not cover this: {reason}" if reason else (
            "Your Pyth Pro access token does not cover one of these feeds."
        )  # fmt: skip
        super().__init__(told, source=SOURCE, type="entitlement")
        self.reason, self.feed_id = reason, feed_id


class UnknownFeed(QueryFailed):
    """The service has no such feed, or nothing at that time; `feed_id` where it names it."""

    def __init__(self, reason: str = "", feed_id: int | None = None) -> None:
        super().__init__(
            "Feed not found. Use get_symbols to discover available feeds.", source=SOURCE, type="not_found"
        )
        self.reason, self.feed_id = reason, feed_id


class Refused(QueryFailed):
    """The service does not take what it was asked, and says why; a feed that is not published yet is none yet."""

    def __init__(self, reason: str) -> None:
        self.is_unready = reason.lower().startswith("not ready")
        super().__init__(f"Pyth Pro refused the request: {reason or 'it does not say why'}", source=SOURCE,
                         type="not_found" if self.is_unready else "invalid_input")  # fmt: skip
        self.reason = reason


def clean_token(token: str | None) -> str | None:
    """A token without the blanks around it, None for none. Raises InvalidToken for what no header can hold.

    An HTTP library would put such a value into its exception, and so into a log.
    """
    trimmed = (token or "").strip(" ")
    if trimmed[:7].lower() == "bearer ":  # pasted with what stands before it in a header
        trimmed = trimmed[7:].strip(" ")
    if not trimmed:
        return None
    if not (trimmed.isascii() and trimmed.isprintable()) or " " in trimmed:
        raise InvalidToken
    return trimmed


_NAMED = re.compile(r"feed:? (\d{1,12})", re.IGNORECASE)
_BEARER = re.compile(r"bearer\s+\S+", re.IGNORECASE)


def failure(status: int, body: bytes, token: str | None, wait_s: float | None = None) -> SourceError:
    """What an answer of this status means, which says to try again after so long."""
    reason = _reason(body, token)
    named = _NAMED.search(reason)
    feed_id = int(named[1]) if named else None
    error: SourceError
    if status == 401:
        error = InvalidToken(missing=token is None)
    elif status == 403:
        error = UnknownFeed(reason, feed_id) if "unknown feed" in reason.lower() else NotEntitled(reason, feed_id)
    elif status == 404:
        error = UnknownFeed(reason)
    elif status in (400, 422):
        error = Refused(reason)
    elif status == 429:
        told = f"Pyth Pro takes no more calls for now; {_later(wait_s, 'wait a little and try again')}."
        error = Busy(told, source=SOURCE, type="rate_limited", **_waiting(wait_s))
    else:
        told = f"Pyth Pro API failed (status {status}); {_later(wait_s, 'try again later')}."
        error = Unreachable(told, source=SOURCE, **_waiting(wait_s))
    error.__cause__ = RuntimeError(f"{status}: {reason}")
    return error


_LONGEST_S = 86_400


def _waiting(wait_s: float | None) -> dict[str, Any]:
    return {} if not wait_s else {"retry_after_s": math.ceil(min(wait_s, _LONGEST_S))}


def _later(wait_s: float | None, words: str) -> str:
    return "try again in {retry_after_s} s".format(**waiting) if (waiting := _waiting(wait_s)) else words


def _reason(body: bytes, token: str | None) -> str:
    """What a failure says of itself, in one line; a proxy may have wrapped it in JSON."""
    text = body[: 16 * _MAX_REASON].decode("utf-8", "replace")
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    else:
        if isinstance(told, dict):
            text = str(next((told[name] for name in ("error", "message", "detail") if told.get(name)), ""))
    if token:
        text = text.replace(token, "[token]")
    text = _BEARER.sub("[token]", text)
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:_MAX_REASON]
