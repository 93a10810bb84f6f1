"""Process: a command that is talked to while it runs, from a thread."""

from __future__ import annotations

import os
import select
import time

from corral.environment.base import Output
from corral.environment.streaming import BACKLOG, PIPE
from corral.errors import InputClosed, StillRunning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from corral.environment.base import CommandResult
    from corral.environment.streaming import Streaming

__all__ = ["PIPE", "Output", "Process"]


class Process:
    """Iterate it for its output; leave its ``with`` block and its whole tree is gone. One thread may read while
    another writes; `signal`, `resize`, `stop` and `close` may come from anywhere."""

    def __init__(self, streaming: Streaming) -> None:
        self.argv = streaming.argv
        self._streaming = streaming
        await_command(streaming)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Process {self.argv[0]} {'running' if self.is_running else 'ended'}>"

    @property
    def is_running(self) -> bool:
        """As far as is known: it is looked at while you read or wait."""
        return self._streaming.is_running

    # ---- output ----

    def __iter__(self) -> Iterator[Output]:
        """Its output as it comes, until there is no more."""
        while (output := self.read()) is not None:
            yield output

    def read(self, timeout: float | None = None) -> Output | None:
        """The next piece of output; None when there will be no more. StillRunning if none came in that time."""
        streaming = self._streaming
        until = None if timeout is None else time.monotonic() + timeout
        with streaming.turn:
            while streaming.has_output:
                output = streaming.more() or streaming.advance(self._happened(until))
                if output is not None:
                    return output
        return None

    def wait(self, timeout: float | None = None) -> CommandResult:
        """Until the whole tree is gone. Output that nobody has read is not lost: its tail is in the result."""
        streaming = self._streaming
        until = None if timeout is None else time.monotonic() + timeout
        with streaming.turn:
            while not streaming.is_over:
                streaming.advance(self._happened(until))
            return streaming.finish()

    def stop(self) -> CommandResult:
        """End it and all it has started, now."""
        self._streaming.ask_to_end()
        return self.wait()

    def close(self) -> None:
        """As `stop`, whatever came of it. Harmless twice."""
        self._streaming.close()

    def _happened(self, until: float | None) -> list[tuple[int, int]]:
        if until is None:
            return self._streaming.happened(None)
        happened = self._streaming.happened(max(0.0, until - time.monotonic()))
        if not happened and self.is_running and time.monotonic() >= until:
            raise StillRunning(f"{self.argv[0]} is still running")
        return happened

    # ---- input, signals, size ----

    def write(self, content: bytes | str) -> None:
        """To its standard input, or its terminal. What it does not read at once is kept and fed to it while you read
        or wait; beyond a megabyte of that, this waits until it has read some. InputClosed if it never will."""
        streaming = self._streaming
        streaming.queue(content)
        while streaming.backlog > BACKLOG:
            self._wait_for_room()
            streaming.feed()
        if streaming.input_is_gone:
            raise InputClosed(f"{self.argv[0]} does not read its input any more")

    def _wait_for_room(self) -> None:
        copies = self._streaming.copies_to_watch()
        if not copies:
            return
        try:
            poll = select.poll()
            poll.register(copies[0], select.POLLOUT)
            poll.register(copies[1], select.POLLHUP)
            is_over = any(fd == copies[1] for fd, _ in poll.poll())
        finally:
            for fd in copies:
                os.close(fd)
        if is_over:
            self._streaming.drop_input()

    def close_stdin(self) -> None:
        """No more input will come. At a terminal: what ^D does."""
        self._streaming.close_input()

    def signal(self, number: int) -> None:
        """To the command itself. SIGKILL goes to all it has started, as `stop` does."""
        self._streaming.signal(number)

    def resize(self, rows: int, columns: int) -> None:
        """Of its terminal; the programs in the foreground get SIGWINCH."""
        self._streaming.resize(rows, columns)


def await_command(streaming: Streaming) -> None:
    """Until the command itself runs; raises what kept it from running."""
    try:
        while not streaming.has_run and streaming.is_running:
            streaming.hear()
    except BaseException:
        streaming.close()
        raise
    if not streaming.has_run:
        streaming.close()
        streaming.finish()
