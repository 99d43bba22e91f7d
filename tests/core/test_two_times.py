"""World time reaches every read by name, so that a type checker finds where it was forgotten."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import quantdeck.sources
from quantdeck.core.contract import Source


def methods() -> Iterator[tuple[str, inspect.Signature]]:
    for module in pkgutil.walk_packages(quantdeck.sources.__path__, "quantdeck.sources."):
        for kind in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(kind) and kind.__module__ == module.name:
                for name, member in vars(kind).items():
                    if inspect.isfunction(member):
                        yield f"{module.name}.{kind.__name__}.{name}", inspect.signature(member)


def test_as_of_is_keyword_only_and_has_no_default():
    found: list[str] = []
    for name, signature in methods():
        parameter: Any = signature.parameters.get("as_of")
        if parameter is not None and not name.rpartition(".")[2].startswith("_"):
            found.append(name)
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, name
            assert parameter.default is inspect.Parameter.empty, name
    assert "quantdeck.sources.sql.strategies.Strategies.ranked" in found


def test_every_read_of_the_strategies_is_as_of_an_instant():
    module = importlib.import_module("quantdeck.sources.sql.strategies")
    assert issubclass(module.Strategies, Source)
    reads = {
        name: inspect.signature(member).parameters
        for name, member in vars(module.Strategies).items()
        if inspect.iscoroutinefunction(member) and not name.startswith("_") and name != "ping"
    }
    assert reads
    assert [name for name, parameters in reads.items() if "as_of" not in parameters] == []
