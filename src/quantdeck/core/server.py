"""A server is a value: its name, what it is for, and what it offers.

Resources and prompts are contracts too, so they are read and rendered through the same pipeline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quantdeck.core.contract import Contract
from quantdeck.core.errors import DeclarationError

Complete = Contract | Callable[[str], Awaitable[list[str]]]  # an argument's values that begin with what was typed
Background = Callable[[Any], Awaitable[None]]  # a task of the serving process, given its app


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something to read at one URI. `read` answers text, or data that becomes JSON."""

    uri: str
    read: Contract
    mime_type: str = "text/plain"
    binary: bool = False  # the text is base64 of what is to be read


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate:
    """Resources by a pattern, such as `pyth://feeds/{asset_type}`; its variables are `read`'s arguments."""

    uri_template: str
    read: Contract
    mime_type: str = "text/plain"
    complete: Mapping[str, Complete] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt; its arguments are `render`'s, and `render` answers the text of a user's message."""

    render: Contract
    complete: Mapping[str, Complete] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    name: str
    purpose: str  # one line for people and lists
    instructions: str = ""  # for the model: units, spelling, what to call first
    tools: tuple[Contract, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    background: tuple[Background, ...] = ()

    def __post_init__(self) -> None:
        names = [spelling for tool in self.tools for spelling in {tool.name, tool.listed}]
        names += [f"prompt {prompt.render.name}" for prompt in self.prompts]
        names += [*(resource.uri for resource in self.resources), *(offer.uri_template for offer in self.templates)]
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise DeclarationError(f"{self.name} offers {', '.join(repeated)} more than once")

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """Everything that can be called, read or rendered."""
        read = (*(resource.read for resource in self.resources), *(template.read for template in self.templates))
        return (*self.tools, *read, *(prompt.render for prompt in self.prompts))
