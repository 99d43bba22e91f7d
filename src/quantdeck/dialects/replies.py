"""What is said beside a reply that is longer than it need be. Nothing is cut for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from quantdeck.core.contract import Contract, Parameter
from quantdeck.core.wire import Answer

__all__ = ["BYTES_PER_TOKEN", "Compact", "smaller_form"]

BYTES_PER_TOKEN = 2.3
"""Of JSON that is mostly numbers, by o200k; prose has about twice as many."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Marks the parameter that chooses a reply's form, and names the smaller one."""

    form: str


def smaller_form(contract: Contract, arguments: Mapping[str, Any], answer: Answer, most_tokens: int) -> str | None:
    """How to ask for the same in less, where the reply is long and there is such a form; 0 tokens are never many."""
    tokens = round(len(answer.encoded) / BYTES_PER_TOKEN)
    if not most_tokens or tokens <= most_tokens or answer.is_error:
        return None
    for parameter in contract.parameters:
        form = _compact(parameter)
        if form is not None and (arguments.get(parameter.wire) or parameter.default) != form:
            return (
                f"This reply is about {tokens:,} tokens, which is over {most_tokens:,}. Asked for with "
                f'"{parameter.wire}": "{form}" it says the same in about half.'
            )
    return None


def _compact(parameter: Parameter) -> str | None:
    return next((mark.form for mark in get_args(parameter.annotation)[1:] if isinstance(mark, Compact)), None)
