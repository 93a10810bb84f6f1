"""Spawn: run a plan to its end with its input given and its output kept, and come back when the whole tree is gone."""

from __future__ import annotations

import os
import select

from corral.jail.launch import SIGPIPE, SIGXFSZ, Launch, reap_leaving
from corral.jail.stdio import Pipes
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corral.jail.plan import Plan
    from corral.jail.stdio import Stdio

__all__ = ["SIGPIPE", "SIGXFSZ", "Outcome", "Run", "Streams", "Tail", "reap_leaving"]

CHUNK = 1 << 16
SMALL = 1 << 12
PIPE_READS = 4  # a pipe holds one chunk


class Streams(Record):
    """``stdin`` None: nothing to read. ``merged``: standard error goes where standard output goes."""

    stdin: bytes | None
    merged: bool
    limit: int


class Tail:
    """The last ``limit`` bytes of a stream, and a count of all of them. Pieces are kept as they came, without a copy;
    only small ones are put together, or a byte at a time would cost fifty."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._pieces: list[bytes] = []
        self._held = 0  # bytes in pieces
        self._small = bytearray()  # what came behind them

    def add(self, chunk: bytes) -> None:
        size = len(chunk)
        self.total += size
        if size < SMALL:
            self._small += chunk
            if len(self._small) < CHUNK:
                return
            chunk = b""
        if self._small:
            self._keep(bytes(self._small))
            self._small.clear()
        if chunk:
            self._keep(chunk)

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._held += len(piece)
        while self._held - len(self._pieces[0]) >= self.limit:
            self._held -= len(self._pieces.pop(0))

    @property
    def dropped(self) -> int:
        return max(0, self.total - self.limit)

    def content(self) -> bytes:
        return b"".join((*self._pieces, self._small))[-self.limit :]


class Outcome(Record):
    """How a run ended. ``over`` names the limit that ended it, if one did."""

    wait_status: int
    over: str
    stdout: Tail
    stderr: Tail
    cpu_seconds: float
    max_rss_kb: int


class Run:
    """One launch under way. All descriptors it holds are closed when :meth:`finish` returns or raises."""

    def __init__(
        self,
        plan: Plan,
        encoded: bytes,
        environment: Mapping[str, str],
        streams: Streams,
        deadline: float | None,
        *,
        stdio: Stdio | None = None,
        spawn: Callable[..., int] | None = None,
    ) -> None:
        self.streams = streams
        self.stdout, self.stderr = Tail(streams.limit), Tail(streams.limit)
        self._stdio = stdio or Pipes(has_input=bool(streams.stdin), merged=streams.merged)
        try:
            self._launch = Launch(plan, encoded, environment, self._stdio, deadline, spawn)
        except BaseException:
            self._stdio.close()
            raise

    def finish(self) -> Outcome:
        launch = self._launch
        try:
            self._watch()
        except BaseException:
            launch.end()
            raise
        finally:
            self._stdio.close()
            launch.close()
        status, cpu, rss = launch.verdict(self.stderr.content)
        return Outcome(status, launch.over, self.stdout, self.stderr, cpu, rss)

    def ask_to_end(self) -> None:
        """From any thread; `finish` comes back when the tree is gone."""
        self._launch.ask_to_end()

    def _watch(self) -> None:
        launch, stdio = self._launch, self._stdio
        launch.read_status()  # what follows is done while the command starts, not before it can
        streams = {stdio.output, stdio.error} - {-1}  # those that are not the caller's own
        poll = select.poll()
        poll.register(launch.status, select.POLLIN)
        for fd in streams:
            os.set_blocking(fd, False)
            poll.register(fd, select.POLLIN)
        pending = memoryview(self.streams.stdin or b"")
        if stdio.input >= 0:
            os.set_blocking(stdio.input, False)
            poll.register(stdio.input, select.POLLOUT)
        while launch.ended is None:
            for fd, _ in poll.poll():
                if fd == launch.status:
                    launch.read_status()
                elif fd == stdio.input:
                    pending = self._feed(pending)
                    if not pending:
                        poll.unregister(fd)
                        os.close(fd)
                        stdio.input = -1
                elif not self._drain_one(fd):
                    poll.unregister(fd)
        # What it printed is in the pipe. What others print, whom it left in a shared jail, is not read.
        for fd in streams:
            for _ in range(PIPE_READS):
                if not self._drain_one(fd):
                    break

    def _feed(self, pending: memoryview) -> memoryview:
        try:
            return pending[os.write(self._stdio.input, pending[: 1 << 20]) :]
        except BlockingIOError:
            return pending
        except BrokenPipeError:
            return memoryview(b"")  # it does not want the rest

    def _drain_one(self, fd: int) -> bool:
        """Read once; False at the end of the stream, or when there is nothing to read."""
        try:
            chunk = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        (self.stdout if fd == self._stdio.output else self.stderr).add(chunk)
        return bool(chunk)
