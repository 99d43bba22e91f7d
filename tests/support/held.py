"""Contexts that are left by the task that entered them.

pytest-asyncio may run the two halves of a fixture in different tasks; anyio's cancel scopes, which the
SDK's clients are made of, refuse that.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, TypeVar

__all__ = ["Held"]

T = TypeVar("T")


class Held:
    """Enter contexts one by one; `close` leaves them in reverse."""

    def __init__(self) -> None:
        self._holders: list[tuple[asyncio.Task[None], asyncio.Event]] = []

    async def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        loop = asyncio.get_running_loop()
        entered: asyncio.Future[Any] = loop.create_future()
        done = asyncio.Event()
        task = loop.create_task(_hold(context, entered, done))
        await asyncio.wait([task, entered], return_when=asyncio.FIRST_COMPLETED)
        if not entered.done():
            await task  # it failed while entering, and says why
        self._holders.append((task, done))
        value: T = entered.result()
        return value

    async def close(self) -> None:
        for task, done in reversed(self._holders):
            done.set()
            await task

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _hold(context: AbstractAsyncContextManager[T], entered: asyncio.Future[T], done: asyncio.Event) -> None:
    async with context as value:
        entered.set_result(value)
        await done.wait()
