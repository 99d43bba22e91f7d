"""What QUANTDECK_DATABASE may say, checked at the start. No sentence repeats it: there may be a password in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from quantdeck.settings import MisconfiguredError

__all__ = ["Address", "address", "file_of"]

_SETTING = "QUANTDECK_DATABASE"
_SCHEMES = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_HOST = re.compile(r"(?:\[[^\[\]]+\]|[^\[\]:]*)(?::(?P<port>.*))?", re.DOTALL)
_ENCODED = "characters with a meaning in URLs are written percent-encoded (%23 for #, %3F for ?, %5B for [)"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the relational data is. Without a path, SQLite's is in the home, a file per group."""

    kind: str
    path: Path | None = None


def address(url: str) -> Address:
    """What a URL names, or a MisconfiguredError where it can be seen at once that it names nothing."""
    if not url:
        return Address("sqlite")
    kind = _SCHEMES.get(url.partition("://")[0].lower()) if "://" in url else None
    if kind is None:
        known = ", ".join(f"{name}://" for name in _SCHEMES)
        raise _refusal(f"begins with none of {known}")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _refusal(f"cannot be read as a URL; {_ENCODED}") from error
    if parts.fragment:
        raise _refusal(f"has a # in it; {_ENCODED}")
    if kind == "sqlite":
        return Address(kind, _file(parts, _SETTING))
    _check_hosts(parts)
    _check_options(parts)
    return Address(kind)


def file_of(url: str, setting: str) -> Path:
    """The file that a sqlite: URL of some other setting names."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _refusal(f"cannot be read as a URL; {_ENCODED}", setting) from error
    if parts.fragment:
        raise _refusal(f"has a # in it; {_ENCODED}", setting)
    return _file(parts, setting)


def _file(parts: SplitResult, setting: str) -> Path:
    if parts.netloc:
        raise _refusal(
            "names a host, and a SQLite file has none; write sqlite:////absolute/path, with four slashes", setting
        )
    if parts.query:
        raise _refusal(f"has a ? in it, and a SQLite file takes no options; {_ENCODED}", setting)
    path = unquote(parts.path[1:])
    if not path.startswith("/"):
        # Relative to what? A client starts its servers wherever it happens to be.
        raise _refusal("names a relative file; write sqlite:////absolute/path, with four slashes", setting)
    if "\0" in path:
        raise _refusal("has a NUL in its path, which no file can have", setting)
    return Path(path)


def _check_hosts(parts: SplitResult) -> None:
    for host in parts.netloc.rpartition("@")[2].split(","):
        found = _HOST.fullmatch(host)
        if found is None:
            raise _refusal(f"has brackets that are not around an IPv6 address; {_ENCODED}")
        if found["port"] and not _is_port(found["port"]):
            raise _refusal(f"has a port that is no number from 1 to 65535; {_ENCODED}")


def _check_options(parts: SplitResult) -> None:
    try:
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError as error:
        raise _refusal("has options that are not written ?name=value&name=value") from error
    if options.get("sslmode", "prefer").replace("_", "-") not in _SSL_MODES:
        raise _refusal(f"has an sslmode that is none of {', '.join(_SSL_MODES)}")
    if not all(_is_port(port) for port in options.get("port", "5432").split(",")):
        raise _refusal("has a port that is no number from 1 to 65535")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536


def _refusal(what: str, setting: str = _SETTING) -> MisconfiguredError:
    return MisconfiguredError(f"{setting} {what}")
