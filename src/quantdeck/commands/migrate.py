"""`quantdeck migrate`: bring the database's tables up to date."""

from __future__ import annotations

import argparse
import asyncio

from quantdeck.commands import UsageError
from quantdeck.connections.databases import Databases
from quantdeck.core.errors import SourceError
from quantdeck.settings import Settings

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> None:
    del arguments
    try:
        applied = asyncio.run(_migrated(Databases(Settings.read())))
    except SourceError as error:
        raise UsageError(error.message) from error
    print("\n".join(applied) if applied else "nothing to do: every migration is applied")


async def _migrated(databases: Databases) -> list[str]:
    try:
        return await databases.migrate()
    finally:
        await databases.close()
