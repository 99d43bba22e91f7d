"""A lean import of the SDK, for the processes where starting fast is the point.

Plainly imported, the SDK pulls in its own client, its high-level server, OAuth and HTTP parts, and
builds some thousand pydantic models: half a second and 25 MB that a stdio server never uses. So:

- the packages `mcp` and `mcp.server` are entered without running their `__init__`, which re-exports
  everything there is;
- models are built when they are first used (pydantic's own `defer_build`);
- over stdio, the modules of the HTTP side are absent: what is imported from them is a placeholder.

Must run before anything imports `mcp`; does nothing where somebody has done so already.
`tests/transports/test_sdk_seams.py` holds it against the installed SDK.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

__all__ = ["HTTP_SIDE", "lean"]

HTTP_SIDE = (
    "mcp.server.auth.middleware.auth_context",
    "mcp.server.auth.middleware.bearer_auth",
    "mcp.server.auth.provider",
    "mcp.server.auth.routes",
    "mcp.server.auth.settings",
    "mcp.server.streamable_http",
    "mcp.server.streamable_http_manager",
    "mcp.server.transport_security",
    "starlette.applications",
    "starlette.middleware",
    "starlette.middleware.authentication",
    "starlette.requests",
    "starlette.routing",
)
"""What `mcp.server.lowlevel.server` imports only for `streamable_http_app`."""


class _Absent(types.ModuleType):
    """A module of which every name is a placeholder class."""

    __path__: list[str] = []  # noqa: RUF012 - what makes it a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def lean(*, http: bool) -> None:
    """Import the SDK's server, and no more of it than this process needs."""
    if "mcp" in sys.modules:
        return
    _enter_package("mcp")
    _enter_package("mcp.server")
    absent = () if http else tuple(name for name in HTTP_SIDE if name not in sys.modules)
    sys.modules |= {name: _Absent(name) for name in absent}
    try:
        with _models_on_first_use():
            import mcp.server.lowlevel
            import mcp.server.subscriptions  # noqa: F401
    finally:
        for name in absent:
            del sys.modules[name]


def _enter_package(name: str) -> None:
    parent, _, child = name.rpartition(".")
    if parent:
        places = [str(Path(place) / child) for place in sys.modules[parent].__path__]
    else:
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec else []
    package = types.ModuleType(name)
    package.__path__ = places
    sys.modules[name] = package
    if parent:
        setattr(sys.modules[parent], child, package)


@contextmanager
def _models_on_first_use() -> Iterator[None]:
    usual = BaseModel.model_config
    BaseModel.model_config = {**usual, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = usual
