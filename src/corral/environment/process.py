"""Process: a command that is talked to while it runs, from a thread."""

from __future__ import annotations

import contextlib
import os
import select
import time
from _thread import allocate_lock

from corral.environment.streaming import BACKLOG, PIPE, Output, Streaming
from corral.errors import CorralError, InputClosed, StillRunning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self

    from corral.environment.base import CommandResult

__all__ = ["PIPE", "Output", "Process"]


class Process(Streaming):
    """Iterate it for its output; leave its ``with`` block and its whole tree is gone. One thread may read while
    another writes; `signal`, `resize` and `stop` may come from anywhere."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._turn = allocate_lock()  # of whoever waits for events
        super().__init__(*args, **options)
        try:
            while not self._launch.running and self._launch.ended is None:
                select.select([self._launch.status], [], [])
                self._launch.read_status()
            if not self._launch.running:
                self._finish()  # says why it never ran
        except BaseException:
            if self._result is None and self._error is None:
                self._launch.end()
                self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Process {self.argv[0]} {'running' if self.is_running else 'ended'}>"

    # ---- output ----

    def __iter__(self) -> Iterator[Output]:
        """Its output as it comes, until there is no more."""
        while (output := self.read()) is not None:
            yield output

    def read(self, timeout: float | None = None) -> Output | None:
        """The next piece of output; None when there will be no more. StillRunning if none came in that time."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._turn:
            while self._open:
                output = self._advance(self._happened(until))
                if output is not None:
                    return output
        return None

    def wait(self, timeout: float | None = None) -> CommandResult:
        """Until the whole tree is gone. Output that nobody has read is not lost: its tail is in the result."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._turn:
            if self._result is None and self._error is None:
                while not self.is_over:
                    self._advance(self._happened(until))
            return self._finish()

    def stop(self) -> CommandResult:
        """End it and all it has started, now."""
        self.ask_to_end()
        return self.wait()

    def close(self) -> None:
        """As `stop`, whatever came of it. Harmless twice."""
        with contextlib.suppress(CorralError):
            self.stop()

    def take_one(self) -> bool:
        """Deal with what there is without waiting; false if there was nothing."""
        happened = self.events.poll(0)
        if happened or self._launch.ended is not None:
            self._advance(happened)
        return bool(happened)

    def _happened(self, until: float | None) -> list[tuple[int, int]]:
        if self._launch.ended is not None:
            return self.events.poll(0)
        if until is None:
            return self.events.poll()
        happened = self.events.poll(max(0.0, until - time.monotonic()))
        if not happened and time.monotonic() >= until:
            raise StillRunning(f"{self.argv[0]} is still running")
        return happened

    # ---- input ----

    def write(self, content: bytes | str) -> None:
        """To its standard input, or its terminal. What it does not read at once is kept and fed to it while you read
        or wait; beyond a megabyte of that, this waits until it has read some. InputClosed if it never will."""
        self._queue(content)
        while self._backlog > BACKLOG:
            self._wait_for_room()
            with self._lock:
                self._feed()
        if self._stdio.input < 0:
            raise InputClosed(f"{self.argv[0]} does not read its input any more")

    def close_stdin(self) -> None:
        """No more input will come. At a terminal: what ^D does."""
        self._close_input()

    def _wait_for_room(self) -> None:
        """On copies, since whoever reads meanwhile may close the originals."""
        with self._lock:
            if self._stdio.input < 0 or self._launch.status < 0:
                return
            copies = os.dup(self._stdio.input), os.dup(self._launch.status)
        try:
            poll = select.poll()
            poll.register(copies[0], select.POLLOUT)
            poll.register(copies[1], select.POLLHUP)
            hung_up = any(fd == copies[1] for fd, _ in poll.poll())
        finally:
            for fd in copies:
                os.close(fd)
        if hung_up:
            with self._lock:
                self._drop_input()
