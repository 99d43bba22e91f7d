"""What the servers offer, as plain data: for the command line, the docs and the tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quantdeck.core.contract import Contract
from quantdeck.core.server import Resource, ResourceTemplate, Server

__all__ = ["hints", "prompts", "resources", "title", "tool", "tools"]


def tools(servers: Iterable[Server]) -> list[dict[str, Any]]:
    """Every tool with everything that is promised of it."""
    return [tool(server.name, contract) for server in servers for contract in server.tools]


def tool(server: str, contract: Contract) -> dict[str, Any]:
    """One tool."""
    policy = contract.policy
    return {
        "server": server,
        "name": contract.name,
        "title": title(contract),
        "description": contract.description,
        "inputSchema": contract.input_schema,
        "outputSchema": contract.output_schema,
        "annotations": hints(contract),
        "errors": [code.code for code in contract.errors],
        "cache_ttl_s": policy.cache_s,
        "timeout_ms": round(policy.deadline_s * 1000),
        "rate_limit_per_min": policy.per_minute,
        "p95_ms": policy.p95_ms,
    }


def title(contract: Contract) -> str:
    """Its name, for people."""
    return contract.name.replace(".", " ").replace("_", " ").capitalize()


def hints(contract: Contract) -> dict[str, bool]:
    """What a client decides by whether to ask its user."""
    policy = contract.policy
    return {
        "readOnlyHint": not policy.effect,
        "destructiveHint": policy.destructive,
        "idempotentHint": policy.idempotent or not policy.effect,
        "openWorldHint": policy.open_world,
    }


def resources(servers: Iterable[Server]) -> list[dict[str, Any]]:
    """Every resource and template; a template's `uri` has variables in it."""
    found = []
    for server in servers:
        found += [_resource(server.name, offer.uri, offer) for offer in server.resources]
        found += [_resource(server.name, offer.uri_template, offer) for offer in server.templates]
    return found


def _resource(server: str, uri: str, offer: Resource | ResourceTemplate) -> dict[str, Any]:
    return {
        "server": server,
        "uri": uri,
        "name": offer.read.name,
        "description": offer.read.description,
        "mimeType": offer.mime_type,
        "cache_ttl_s": offer.read.policy.cache_s,
    }


def prompts(servers: Iterable[Server]) -> list[dict[str, Any]]:
    """Every prompt with its arguments."""
    return [
        {
            "server": server.name,
            "name": prompt.render.name,
            "description": prompt.render.description,
            "arguments": [
                {
                    "name": parameter.wire,
                    "description": prompt.render.input_schema["properties"][parameter.wire].get("description"),
                    "required": parameter.required,
                }
                for parameter in prompt.render.parameters
            ],
        }
        for server in servers
        for prompt in server.prompts
    ]
