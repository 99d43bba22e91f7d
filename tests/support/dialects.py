"""Every dialect there is, found where they are: a new one needs to be named nowhere."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import quantdeck.dialects
from quantdeck.dialects.spec import Spec

__all__ = ["DIALECTS"]


def _found() -> list[Spec]:
    modules = [import_module(found.name) for found in iter_modules(quantdeck.dialects.__path__, "quantdeck.dialects.")]
    held = [value for module in modules for value in vars(module).values() if isinstance(value, Spec)]
    return list({id(dialect): dialect for dialect in held}.values())


DIALECTS = tuple(_found())
