"""Who calls over HTTP: the token file, the one token for everything, and nobody in particular."""

from __future__ import annotations

import hmac
import logging
import os
import stat
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from quantdeck.core.call import Caller
from quantdeck.settings import MisconfiguredError, Settings

__all__ = ["Identity", "Tokens", "whole"]

log = logging.getLogger(__name__)

Name = Annotated[str, Field(min_length=1, max_length=128)]
Run = Annotated[str, Field(pattern="^run:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
"""A scope that lets its bearer see one backtest run and no other."""


class Token(BaseModel):
    """One entry of the token file. The token itself is kept by its owner only."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Name
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    scopes: frozenset[Literal["read", "write", "*"] | Run]
    servers: frozenset[Name] = frozenset({"*"})
    account: str | None = None


_FILE = TypeAdapter(list[Token])


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and the user that the SDK binds sessions to; anonymous callers have none."""

    caller: Caller
    user: AuthenticatedUser | None = None

    @classmethod
    def of(cls, token: Token) -> Identity:
        caller = Caller(token.id, token.scopes, token.servers, token.account, token.sha256)
        known = AccessToken(token="", client_id=token.id, scopes=sorted(token.scopes), subject=token.sha256)
        return cls(caller, AuthenticatedUser(known))


class Tokens:
    """Every bearer that is accepted. The file is read again when it has changed."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.tokens
        # a secret read from a file may end in a line feed, which no header can carry
        auth, portfolio = settings.auth_token.get_secret_value().strip(), settings.portfolio_token.get_secret_value()
        self._auth = [whole("token", auth)] if auth else []
        # a caller has one Authorization header, so what opens the portfolio must open the door in front of it
        self._portfolio = [whole("portfolio", portfolio)] if portfolio else []
        self._signed = bool(settings.hmac_secret.get_secret_value().strip())
        self._filed: list[Identity] = []
        self._version: tuple[int, ...] | None = None
        if self._path is not None:
            self._version = _version(self._path)
            self._filed = _read(self._path)

    @property
    def required(self) -> bool:
        """Whether a caller must present one, or sign."""
        return self._path is not None or bool(self._auth) or self._signed

    def identify(self, bearer: bytes | None, peer: str) -> Identity | None:
        """Who presents this; None for one who may not come in.

        Where no token is required, one that nobody knows does no harm and gives no rights: the caller is anonymous, and
        tools that want a particular one compare it themselves.
        """
        secret = sha256(bearer).hexdigest() if bearer else None
        known = self._of(secret) if secret else None
        if known is not None or self.required:
            return known
        return Identity(Caller(peer, secret=secret))

    def _of(self, secret: str) -> Identity | None:
        self._refresh()
        found = None
        # All are compared, so that the time it takes tells nothing; what the file says of a token counts first.
        for identity in (*self._portfolio, *self._auth, *self._filed):
            if hmac.compare_digest(identity.caller.secret or "", secret):
                found = identity
        return found

    def _refresh(self) -> None:
        if self._path is None:
            return
        try:
            version = _version(self._path)
            if version == self._version:
                return
            self._version = version
            self._filed = _read(self._path)
        except MisconfiguredError as error:
            # Half written, perhaps: what was valid stays so until the file can be read again.
            told = {"why": str(error), "kept": len(self._filed)}
            log.error("token_file_unreadable", extra={"fields": told})  # noqa: TRY400
        else:
            log.info("token_file_read", extra={"fields": {"tokens": len(self._filed)}})


def whole(name: str, token: str) -> Identity:
    """The holder of a token, or of a secret to sign with, who may do everything."""
    digest = sha256(token.encode()).hexdigest()
    return Identity.of(Token(id=name, sha256=digest, scopes=frozenset({"*"})))


def _version(path: Path) -> tuple[int, ...]:
    try:
        found = path.expanduser().stat()
    except OSError as error:
        raise MisconfiguredError(f"QUANTDECK_TOKENS: {path} cannot be read: {error.strerror}") from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> list[Identity]:
    try:
        with path.expanduser().open("rb") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read()
    except OSError as error:
        raise MisconfiguredError(f"QUANTDECK_TOKENS: {path} cannot be read: {error.strerror}") from error
    try:
        tokens = _FILE.validate_json(text.removeprefix(BOM_UTF8))
    except ValidationError as error:
        raise MisconfiguredError(f"QUANTDECK_TOKENS: {path}: {_first(error)}") from None
    if repeated := _repeated([token.id for token in tokens]) or _repeated([token.sha256 for token in tokens]):
        raise MisconfiguredError(f"QUANTDECK_TOKENS: {path}: {repeated} is there more than once")
    if not tokens:
        raise MisconfiguredError(f"QUANTDECK_TOKENS: {path} has no tokens, so nobody could call")
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        told = {"path": str(path), "advice": "chmod 600"}
        log.warning("token_file_readable_by_others", extra={"fields": told})
    return [Identity.of(token) for token in tokens]


def _first(error: ValidationError) -> str:
    """What is wrong and where, without repeating what stands there: it may be a token."""
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(step) for step in problem["loc"])
    return f"{place}: {problem['msg']}" if place else problem["msg"]


def _repeated(values: Sequence[str]) -> str | None:
    return next((value for value in values if values.count(value) > 1), None)
