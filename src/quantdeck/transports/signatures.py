"""Requests that are signed with a secret which both sides know, each of which counts once.

    X-Timestamp   seconds since 1970; at most five minutes from the server's clock
    X-Nonce       1 to 128 printable characters, never used before
    X-Signature   HMAC-SHA256, in hexadecimal, of  METHOD|PATH|timestamp|nonce|body

A signature without the nonce, of METHOD|PATH|timestamp|body, is taken too. Since nobody could tell such a request from
its copy with another nonce, a signature counts once as well.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from quantdeck.core.call import Coordination
from quantdeck.core.errors import SourceError
from quantdeck.ids import usable_id
from quantdeck.transports.asgi import Refused, header
from quantdeck.transports.auth import Identity, whole

if TYPE_CHECKING:
    from starlette.types import Scope

__all__ = ["WINDOW_S", "Signatures"]

WINDOW_S = 300


class Signatures:
    """The secret, and what was signed with it before. `clock` is for tests."""

    def __init__(self, secret: str, coordination: Coordination, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret.strip().encode()  # one that was read from a file may end in a line feed
        self._identity = whole("hmac", secret.strip())
        self._coordination = coordination
        self._clock = clock

    @property
    def used(self) -> bool:
        """Whether there is a secret at all."""
        return bool(self._secret)

    def presented(self, scope: Scope) -> bool:
        """Whether this request claims to be signed, and there is something to hold it against."""
        return self.used and header(scope, b"x-signature") is not None

    def check_time(self, scope: Scope) -> None:
        """Refuse what is too old before its body is read."""
        said = header(scope, b"x-timestamp") or ""
        if not (said.isascii() and said.isdigit() and len(said) < 12):
            raise _refusal("a signed request needs X-Timestamp, in seconds since 1970")
        if abs(self._clock() - int(said)) > WINDOW_S:
            raise _refusal(f"X-Timestamp is more than {WINDOW_S} s from this server's clock")
        if usable_id(header(scope, b"x-nonce")) is None:
            raise _refusal("a signed request needs X-Nonce, of 1 to 128 printable characters")

    async def identify(self, scope: Scope, body: bytes) -> Identity:
        """Who signed this; raises Refused for a signature that is wrong or was seen before."""
        names = (b"x-timestamp", b"x-nonce", b"x-signature")
        timestamp, nonce, signature = (header(scope, name) or "" for name in names)
        begins = f"{scope['method']}|{scope['path']}|{timestamp}|"
        signed = [self._sign(text.encode() + body) for text in (f"{begins}{nonce}|", begins)]
        presented = signature.lower().encode()
        matches = [hmac.compare_digest(presented, one) for one in signed]  # both, so that the time tells nothing
        if not any(matches):
            raise _refusal("X-Signature is not that of this request")
        try:
            names_used = (f"signature {signature.lower()}", f"nonce {nonce}")
            fresh = [await self._coordination.first(name, 2 * WINDOW_S) for name in names_used]
        except SourceError as error:
            raise Refused(503, f"Backend unavailable: {error.message}", retry_after="1") from error
        if not all(fresh):
            raise _refusal("this request was made before; sign each one with a nonce of its own")
        return self._identity

    def _sign(self, text: bytes) -> bytes:
        return hmac.new(self._secret, text, sha256).hexdigest().encode()


def _refusal(what: str) -> Refused:
    return Refused(401, f"Unauthorized: {what}", www_authenticate="Bearer")
