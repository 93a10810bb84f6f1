"""Jobs: commands that run in the background of an environment. One thread takes the output of all of them."""

from __future__ import annotations

import contextlib
import os
import select
import threading

from corral.environment.process import Process
from corral.errors import CorralError, JobExists, PolicyError, StillRunning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.environment.base import CommandResult
    from corral.environment.streaming import Streaming

PIECES_IN_TURN = 16  # of one job's output, before the next job is looked at


class Job:
    """Its output is taken all the time, so it never stands still because nobody reads. Any thread may use it."""

    def __init__(self, name: str, streaming: Streaming) -> None:
        self.name = name
        self.argv = streaming.argv
        self._process = Process(streaming)
        self._streaming = streaming
        self._lock = threading.Lock()
        self._ended = threading.Event()
        # Readable once it has ended, for an event loop to wait for.
        self.ended_fd = os.eventfd(0, os.EFD_CLOEXEC)

    def __repr__(self) -> str:
        return f"<Job {self.name!r} {'running' if self.is_running else 'ended'}>"

    @property
    def is_running(self) -> bool:
        return not self._ended.is_set()

    @property
    def output(self) -> str:
        """Standard output so far, and standard error with it unless kept apart: the last of it, to the limit."""
        return self.output_bytes.decode("utf-8", "replace")

    @property
    def output_bytes(self) -> bytes:
        with self._lock:
            return self._streaming.stdout_tail.content()

    @property
    def output_bytes_dropped(self) -> int:
        with self._lock:
            return self._streaming.stdout_tail.dropped

    @property
    def error_output(self) -> str:
        """Standard error so far, where it was kept apart."""
        with self._lock:
            return self._streaming.stderr_tail.content().decode("utf-8", "replace")

    def write(self, content: bytes | str) -> None:
        self._process.write(content)

    def close_stdin(self) -> None:
        self._process.close_stdin()

    def signal(self, number: int) -> None:
        self._process.signal(number)

    def wait(self, timeout: float | None = None) -> CommandResult:
        """Until its whole tree is gone; StillRunning if that takes longer."""
        if not self._ended.wait(timeout):
            raise StillRunning(f"job {self.name!r} is still running")
        return self._process.wait()

    def stop(self) -> CommandResult:
        """End it and all it has started, and wait until that is gone."""
        self.ask_to_end()
        return self.wait()

    def ask_to_end(self) -> None:
        """As `stop`; returns at once."""
        self._streaming.ask_to_end()

    # ---- for the thread that takes its output ----

    @property
    def events(self) -> int:
        return self._streaming.events.fileno()

    def take_output(self) -> bool:
        """What is there now, but not for long; true when there is no more to come."""
        streaming = self._streaming
        for _ in range(PIECES_IN_TURN):
            happened = streaming.happened()
            if streaming.is_over or (not happened and streaming.is_running):
                break
            with self._lock:
                streaming.advance(happened)
        return streaming.is_over

    def conclude(self) -> None:
        with contextlib.suppress(CorralError):
            self._process.wait()
        self._ended.set()
        os.eventfd_write(self.ended_fd, 1)

    def close(self) -> None:
        if self.ended_fd >= 0:
            os.close(self.ended_fd)
            self.ended_fd = -1


class Jobs:
    """All jobs of one environment, and the thread that listens to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._named: dict[str, Job | None] = {}  # None: being started
        self._listened: dict[int, Job] = {}
        self._events = select.epoll()
        self._leave = os.eventfd(0, os.EFD_CLOEXEC)
        self._events.register(self._leave, select.EPOLLIN)
        self._thread = threading.Thread(target=self._listen, name="corral-jobs", daemon=True)
        self._thread.start()

    def by_name(self) -> dict[str, Job]:
        with self._lock:
            return {name: job for name, job in self._named.items() if job is not None}

    def add(self, name: str, start: Callable[[], Streaming]) -> Job:
        if not name:
            raise PolicyError("a background job needs a name")
        with self._lock:
            former = self._named.get(name)
            if name in self._named and (former is None or former.is_running):
                raise JobExists(f"a job {name!r} is running; stop it first, or take another name")
            self._named[name] = None
        job: Job | None = None
        try:
            job = Job(name, start())
        finally:
            with self._lock:
                if job is not None:
                    self._named[name] = job
                elif former is not None:
                    self._named[name] = former
                else:
                    del self._named[name]
        if former is not None:
            former.close()
        fd = job.events
        self._listened[fd] = job
        self._events.register(fd, select.EPOLLIN)
        return job

    def _listen(self) -> None:
        while True:
            for fd, _ in self._events.poll():
                if fd == self._leave:
                    return
                job = self._listened[fd]
                if job.take_output():
                    self._events.unregister(fd)
                    del self._listened[fd]
                    job.conclude()

    def close(self) -> None:
        """End all jobs, and come back when they are gone."""
        jobs = list(self.by_name().values())
        for job in jobs:
            job.ask_to_end()
        for job in jobs:
            with contextlib.suppress(CorralError):
                job.wait()
        os.eventfd_write(self._leave, 1)
        self._thread.join()
        self._events.close()
        os.close(self._leave)
        for job in jobs:
            job.close()
