"""What an event loop is asked for: to wait for a descriptor, and for work that is done in a few threads.

On asyncio directly, on every other loop through anyio. anyio's own way on asyncio goes round the loop several times for
each, which was half of what a launch cost the interpreter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


class Loop:
    """The one that runs here, whichever it is. ``threads``: so many at most."""

    def __init__(self, threads: int) -> None:
        self._limiter = anyio.CapacityLimiter(threads)

    async def readable(self, fd: int) -> None:
        await anyio.wait_readable(fd)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Cancelled, it may come back before the thread does."""
        return await anyio.to_thread.run_sync(call, limiter=self._limiter)

    def close(self) -> None:
        """From a thread: no more work will come."""


class AsyncioLoop(Loop):
    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None

    async def readable(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        is_readable = loop.create_future()
        loop.add_reader(fd, _tell, is_readable)
        try:
            await is_readable
        finally:
            loop.remove_reader(fd)

    async def in_thread(self, call: Callable[[], T]) -> T:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._threads, "corral")
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _tell(is_readable: asyncio.Future[None]) -> None:
    if not is_readable.done():
        is_readable.set_result(None)


def loop_here(threads: int) -> Loop:
    """A loop of trio's may itself be a guest of asyncio's; its tasks are not asyncio's then."""
    try:
        on_asyncio = asyncio.current_task() is not None
    except RuntimeError:
        on_asyncio = False
    return AsyncioLoop(threads) if on_asyncio else Loop(threads)


class Turn:
    """For one task at a time. Where nobody else has it, it is taken without a trip round the loop."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[anyio.Event] = []

    async def __aenter__(self) -> None:
        while self._taken:
            told = anyio.Event()
            self._waiting.append(told)
            try:
                await told.wait()
            except BaseException:
                if told in self._waiting:
                    self._waiting.remove(told)
                else:
                    self._tell_next()  # it was our turn
                raise
        self._taken = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._taken = False
        self._tell_next()

    def _tell_next(self) -> None:
        if self._waiting and not self._taken:
            self._waiting.pop(0).set()
