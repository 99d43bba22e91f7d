"""A serving process over stdio: an app, its background tasks, and one connection."""

from __future__ import annotations

from quantdeck.app import open_app, running
from quantdeck.core.server import Server
from quantdeck.settings import Settings
from quantdeck.transports.mcp import mcp_server
from quantdeck.transports.stdio import serve_stdio
from quantdeck.transports.watchers import Watchers

__all__ = ["serve_app"]


async def serve_app(settings: Settings, servers: tuple[Server, ...]) -> None:
    """Serve until the client leaves or a signal asks to stop."""
    watchers = Watchers()
    async with open_app(settings, servers) as app, running(app):
        app.runtime.changed = watchers.changed
        sdk = mcp_server(app, servers, watchers, raw=True, dotted=settings.dotted_names)
        await serve_stdio(sdk, options=sdk.create_initialization_options(), on_closing=watchers.close)
