"""Several servers behind one connection or endpoint."""

from __future__ import annotations

from quantdeck.core.server import Server

__all__ = ["merged"]


def merged(servers: tuple[Server, ...]) -> Server:
    """Several servers as one; a single one stays itself. What two of them offer under one name is refused."""
    if len(servers) == 1:
        return servers[0]
    return Server(
        name="quantdeck",
        purpose="; ".join(server.purpose for server in servers),
        instructions="\n\n".join(f"{s.name}: {s.instructions}" for s in servers if s.instructions),
        tools=tuple(tool for server in servers for tool in server.tools),
        resources=tuple(resource for server in servers for resource in server.resources),
        templates=tuple(template for server in servers for template in server.templates),
        prompts=tuple(prompt for server in servers for prompt in server.prompts),
    )
