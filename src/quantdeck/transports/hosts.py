"""Which Host and Origin are answered: what a web page could make a browser send must not reach a local server."""

from __future__ import annotations

import ipaddress
import re

from starlette.types import Scope

from quantdeck.settings import Http
from quantdeck.transports.asgi import Refused

__all__ = ["Hosts", "is_loopback"]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(:(?P<port>\d*))?")
_ORIGIN = re.compile(r"https?://(?P<host>[^/]+)")


class Hosts:
    """The names this server answers to: loopback's, the address it is bound to, and those that are set."""

    def __init__(self, http: Http) -> None:
        bound = f"[{http.host}]" if ":" in http.host else http.host
        self._hosts = _LOOPBACK | {bound.lower()} | {host.lower() for host in http.hosts}
        self._origins = frozenset(origin.lower().rstrip("/") for origin in http.origins)

    def check(self, scope: Scope) -> None:
        """Raise Refused for a request that was addressed to somebody else, or comes from a foreign page."""
        addressed = False
        for name, value in scope["headers"]:
            if name == b"host":
                addressed = self._answers_to(value.decode("latin-1").lower())
            elif name == b"origin" and not self._trusts(value.decode("latin-1").lower()):
                raise Refused(403, "Forbidden: pages of that Origin may not call this server")
        if not addressed:
            raise Refused(421, "Misdirected request: this server does not answer to that Host")

    def _answers_to(self, host: str) -> bool:
        if host in self._hosts:
            return True
        parts = _HOST.fullmatch(host)
        return parts is not None and parts["name"].removesuffix(".") in self._hosts  # DNS: the same name

    def _trusts(self, origin: str) -> bool:
        if origin in self._origins:
            return True
        page = _ORIGIN.fullmatch(origin)
        parts = _HOST.fullmatch(page["host"]) if page else None
        return parts is not None and parts["name"] in _LOOPBACK


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
