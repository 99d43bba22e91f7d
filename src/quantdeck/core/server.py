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

__all__ = ["Background", "Complete", "Prompt", "Resource", "ResourceTemplate", "Server", "merged"]

Complete = Callable[[str], Awaitable[list[str]]]
"""Values of one argument that begin with what was typed."""

Background = Callable[[Any], Awaitable[None]]
"""A task of the running process, given its app. `tools` and `call` never start one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something to read at one URI. `read` answers text, or data that becomes JSON."""

    uri: str
    read: Contract
    mime_type: str = "text/plain"
    binary: bool = False
    """The text is base64 of what is to be read."""


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
    """One MCP server."""

    name: str
    purpose: str
    """One line for people and lists."""
    instructions: str = ""
    """For the model: units, spelling, what to call first."""
    tools: tuple[Contract, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    background: tuple[Background, ...] = ()

    def __post_init__(self) -> None:
        repeated = [name for name, count in Counter(self._names()).items() if count > 1]
        if repeated:
            raise DeclarationError(f"{self.name} offers {', '.join(repeated)} more than once")

    def _names(self) -> list[str]:
        names = [spelling for tool in self.tools for spelling in {tool.name, tool.listed}]
        names += [f"prompt {prompt.render.name}" for prompt in self.prompts]
        names += [resource.uri for resource in self.resources]
        return names + [template.uri_template for template in self.templates]

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """Everything that can be called, read or rendered."""
        readable = (offer.read for offer in (*self.resources, *self.templates))
        return (*self.tools, *readable, *(prompt.render for prompt in self.prompts))


def merged(servers: tuple[Server, ...]) -> Server:
    """Several servers as one, for a process or an endpoint that serves them together."""
    if len(servers) == 1:
        return servers[0]
    return Server(
        name="quantdeck",
        purpose="; ".join(server.purpose for server in servers),
        instructions="\n\n".join(f"{s.name}: {s.instructions}" for s in servers if s.instructions),
        tools=tuple(tool for server in servers for tool in server.tools),
        resources=tuple(offer for server in servers for offer in server.resources),
        templates=tuple(offer for server in servers for offer in server.templates),
        prompts=tuple(offer for server in servers for offer in server.prompts),
        background=tuple(task for server in servers for task in server.background),
    )
