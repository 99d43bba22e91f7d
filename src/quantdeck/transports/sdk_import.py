"""A lean import of the SDK, for the processes where starting fast is the point.

Plainly imported, the SDK pulls in its own client, its high-level server, OAuth and HTTP parts, and
builds some thousand pydantic models: half a second and 25 MB that a stdio server never uses. So:

- the packages `mcp` and `mcp.server` are entered without running their `__init__`, which re-exports
  everything there is;
- models are built when they are first used (pydantic's own `defer_build`);
- of the two protocol eras only the one that a client speaks is loaded, when it has spoken;
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
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema

__all__ = ["ERAS", "HTTP_SIDE", "lean"]

ERAS = ("mcp_types._v2025_11_25", "mcp_types._v2026_07_28")
"""The wire models of each era, of which a process usually needs one."""

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


class _Era(types.ModuleType):
    """A module of wire models that is not loaded yet."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Model(self.__name__, name)


class _Model:
    """A wire model, as far as the SDK's tables use one; loads its era when it is first asked."""

    def __init__(self, era: str, name: str) -> None:
        self._era, self._name = era, name

    @cached_property
    def _loaded(self) -> Any:
        with _models_on_first_use():
            return getattr(import_module(self._era), self._name)

    def model_validate(self, *given: Any, **how: Any) -> Any:
        return self._loaded.model_validate(*given, **how)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self._loaded)


def lean(*, http: bool) -> None:
    """Import the SDK's server, and no more of it than this process needs."""
    if "mcp" in sys.modules:
        return
    _enter_package("mcp")
    _enter_package("mcp.server")
    absent = () if http else tuple(name for name in HTTP_SIDE if name not in sys.modules)
    sys.modules |= {name: _Absent(name) for name in absent} | {name: _Era(name) for name in ERAS}
    try:
        with _models_on_first_use():
            import mcp.server.lowlevel
            import mcp.server.subscriptions  # noqa: F401
    finally:
        for name in (*absent, *ERAS):
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
    config, adapters = BaseModel.model_config, TypeAdapter._defer_build  # noqa: SLF001 - no setting reaches a union's
    BaseModel.model_config = {**config, "defer_build": True}
    TypeAdapter._defer_build = property(lambda _: True)  # type: ignore[assignment,method-assign]  # noqa: SLF001
    try:
        yield
    finally:
        BaseModel.model_config = config
        TypeAdapter._defer_build = adapters  # type: ignore[method-assign]  # noqa: SLF001
