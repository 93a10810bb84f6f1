"""AsyncProcess and AsyncJob: a command that is talked to, or left alone, from an event loop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Self, TypeVar

import anyio
import anyio.lowlevel

from corral.environment.aloop import Loop, Turn
from corral.environment.base import CommandResult, Output
from corral.environment.jobs import Job
from corral.environment.streaming import BACKLOG, Streaming
from corral.errors import CorralError, InputClosed, StillRunning

T = TypeVar("T")

PIECES_IN_TURN = 16  # of output that is there already, before other tasks get a turn


async def despite_cancellation(call: Callable[[], Awaitable[T]]) -> T:
    """To its end. A cancellation that comes meanwhile is raised afterwards: asyncio's own passes through shields."""
    cancelled: list[BaseException] = []
    result: list[T] = []
    with anyio.CancelScope(shield=True):
        while not result:
            try:
                result.append(await call())
            except anyio.get_cancelled_exc_class() as error:
                cancelled.append(error)
    if cancelled:
        raise cancelled[0]
    return result[0]


@contextlib.contextmanager
def still_running_after(timeout: float, name: str) -> Iterator[None]:
    try:
        with anyio.fail_after(timeout):
            yield
    except StillRunning:
        raise
    except TimeoutError:
        raise StillRunning(f"{name} is still running") from None


class AsyncProcess:
    """As Process: iterate it for its output; leave its ``async with`` block and its whole tree is gone."""

    def __init__(self, streaming: Streaming, loop: Loop, ended: Callable[[AsyncProcess], None]) -> None:
        self._streaming = streaming
        self._loop = loop
        self._on_end = ended
        self._turn = Turn()
        self._pieces = 0
        self._writing = -1
        self.argv = streaming.argv

    @property
    def is_running(self) -> bool:
        return self._streaming.is_running

    def __repr__(self) -> str:
        return f"<AsyncProcess {self.argv[0]} {'running' if self.is_running else 'ended'}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- output ----

    def __aiter__(self) -> AsyncIterator[Output]:
        return self  # not a generator: one that is left in the middle would wait for the collector

    async def __anext__(self) -> Output:
        output = await self.read()
        if output is None:
            raise StopAsyncIteration
        return output

    async def read(self, timeout: float | None = None) -> Output | None:
        """The next piece of output; None when there will be no more. StillRunning if none came in that time."""
        with self._at_most(timeout):
            async with self._turn:
                while self._streaming.has_output:
                    output = await self._advance()
                    if output is not None:
                        return output
        return None

    async def wait(self, timeout: float | None = None) -> CommandResult:
        """Until the whole tree is gone. Output that nobody has read is not lost: its tail is in the result."""
        with self._at_most(timeout):
            async with self._turn:
                while not self._streaming.is_over:
                    await self._advance()
                return self._finish()

    async def stop(self) -> CommandResult:
        """End it and all it has started, now."""
        self.ask_to_end()
        return await self.wait()

    async def _advance(self) -> Output | None:
        output = self._streaming.more()
        if output is not None:
            return output
        happened = self._streaming.happened()
        self._pieces += 1
        if not happened and self.is_running:
            await self._loop.readable(self._streaming.events.fileno())
            self._pieces = 0
            happened = self._streaming.happened()
        elif self._pieces > PIECES_IN_TURN:
            self._pieces = 0
            await anyio.lowlevel.checkpoint()
        return self._streaming.advance(happened)

    def _at_most(self, timeout: float | None) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if timeout is None else still_running_after(timeout, self.argv[0])

    # ---- input, signals, size ----

    async def write(self, content: bytes | str) -> None:
        """As Process.write: beyond a megabyte that it has not read, this waits until it has read some."""
        self._streaming.queue(content)
        while self._streaming.backlog > BACKLOG:
            await self._room()
            self._streaming.feed()
        if self._streaming.input_is_gone:
            raise InputClosed(f"{self.argv[0]} does not read its input any more")
        await anyio.lowlevel.checkpoint()

    async def _room(self) -> None:
        """On copies, since whoever reads meanwhile may close the originals."""
        copies = self._streaming.copies_to_watch()
        if not copies:
            return
        self._writing = copies[0]
        try:
            await anyio.wait_writable(self._writing)
        except anyio.ClosedResourceError:
            self._streaming.drop_input()
        finally:
            self._writing = -1
            for fd in copies:
                os.close(fd)

    async def close_stdin(self) -> None:
        """No more input will come. At a terminal: what ^D does."""
        self._streaming.close_input()

    def signal(self, number: int) -> None:
        """To the command itself. SIGKILL goes to all it has started, as `stop` does."""
        self._streaming.signal(number)

    def resize(self, rows: int, columns: int) -> None:
        self._streaming.resize(rows, columns)

    # ---- the end ----

    def _finish(self) -> CommandResult:
        if self._writing >= 0:
            anyio.notify_closing(self._writing)
        self._on_end(self)
        return self._streaming.finish()

    def ask_to_end(self) -> None:
        """As `stop`; returns at once."""
        self._streaming.ask_to_end()

    async def close(self) -> None:
        """End it, and come back when its tree is gone, cancelled or not. Harmless twice."""
        if self._streaming.is_finished:
            return
        self.ask_to_end()
        with contextlib.suppress(CorralError):
            await despite_cancellation(self.wait)


class AsyncJob:
    """As Job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.name = job.name
        self.argv = job.argv

    def __repr__(self) -> str:
        return f"<AsyncJob {self.name!r} {'running' if self.is_running else 'ended'}>"

    @property
    def is_running(self) -> bool:
        return self._job.is_running

    @property
    def output(self) -> str:
        return self._job.output

    @property
    def output_bytes(self) -> bytes:
        return self._job.output_bytes

    @property
    def output_bytes_dropped(self) -> int:
        return self._job.output_bytes_dropped

    @property
    def error_output(self) -> str:
        return self._job.error_output

    def signal(self, number: int) -> None:
        self._job.signal(number)

    async def wait(self, timeout: float | None = None) -> CommandResult:
        with contextlib.nullcontext() if timeout is None else still_running_after(timeout, self.name):
            if self._job.is_running:
                copy = os.dup(self._job.ended_fd)  # several tasks may wait, each for a descriptor of its own
                try:
                    await anyio.wait_readable(copy)
                finally:
                    os.close(copy)
        return self._job.wait()

    async def stop(self) -> CommandResult:
        self._job.ask_to_end()
        return await self.wait()
