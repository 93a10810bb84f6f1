"""Many requests, a line each: answered in the order of completion, and cancelled by their id.

The reader never waits for a call, so that a cancel is heard at once; what may wait is bounded in number and in bytes.
"""

from __future__ import annotations

import os
import select
import threading
from queue import SimpleQueue

from corral.files.atomic import write_all
from corral.serve.desk import Desk, decoded
from corral.serve.lines import TooLong, lines, readable
from corral.tools.call import Cancel
from corral.tools.engine import failed
from corral.tools.envelope import encode, request_id_of
from corral.tools.failures import Failure, invalid
from corral.tools.limits import MB, REQUEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.tools.envelope import Response

    Request = dict[str, object]

AT_ONCE = 64
WAITING = 1024
WAITING_BYTES = 64 * MB
ENDING_SECONDS = 5.0
# One file and nothing else: over before a cancel could be heard. If nothing else is under way the reader sees to these
# itself, and no thread need be woken.
QUICK = frozenset(("read_file", "stat_file", "edit_file", "list_tools"))


class Job:
    """A request that waits or runs."""

    __slots__ = ("cancel", "request", "size")

    def __init__(self, request: Request, size: int) -> None:
        self.request = request
        self.size = size
        self.cancel = Cancel()


class Stream:
    """Reads requests from one descriptor and writes responses to another."""

    def __init__(self, desk: Desk, source: int, sink: int) -> None:
        self._desk = desk
        self._source, self._sink = source, sink
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._under_way: set[Job] = set()
        self._by_id: dict[str, Job] = {}
        self._bytes = 0
        self._workers = self._idle = 0
        self._changed = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def run(self) -> None:
        """Until the input ends and all is answered, or until nobody reads the answers any more."""
        try:
            for line in lines(self._source, REQUEST_BYTES, lambda: readable(self._source, self._sink)):
                if isinstance(line, TooLong) or line.strip():
                    self._take(line)
            while self._under_way and readable(self._changed, self._sink):
                os.eventfd_read(self._changed)
        finally:
            self._end_all()

    def _end_all(self) -> None:
        with self._lock:
            left = list(self._under_way)
        for job in left:
            job.cancel.set()
        poll = select.poll()
        poll.register(self._changed, select.POLLIN)
        while self._under_way and poll.poll(ENDING_SECONDS * 1000):
            os.eventfd_read(self._changed)

    # ---- in ----

    def _take(self, line: bytes | TooLong) -> None:
        request, problem = decoded(line)
        if problem is not None:
            self._refuse(request, problem)
        elif "cancel" in request and "tool" not in request:
            self._write(self._cancel(request))
        else:
            job = Job(request, len(line) if isinstance(line, bytes) else line.size)
            tool = request.get("tool")
            if isinstance(tool, str) and tool in QUICK and not self._under_way:
                self._write(self._desk.call(request, job.cancel))
                return
            problem = self._admit(job)
            if problem is not None:
                self._refuse(request, problem)

    def _admit(self, job: Job) -> Response | None:
        """Let it wait for a worker; or the response that says why not."""
        name = request_id_of(job.request)
        with self._lock:
            if name and name in self._by_id:
                return failed(invalid(f"request_id {name!r} is under way already"))
            waiting = len(self._under_way) - AT_ONCE
            if waiting >= WAITING or (self._under_way and self._bytes + job.size > WAITING_BYTES):
                return failed(Failure("too many requests at once", "resource_limit", "wait for some answers"))
            self._under_way.add(job)
            self._bytes += job.size
            if name:
                self._by_id[name] = job
            if self._idle == 0 and self._workers < AT_ONCE:
                self._workers += 1
                threading.Thread(target=self._work, daemon=True).start()
            else:
                self._idle = max(0, self._idle - 1)
        self._jobs.put(job)
        return None

    def _cancel(self, request: Request) -> Response:
        wanted = request.get("cancel")
        unknown = next((key for key in request if key not in ("cancel", "request_id")), None)
        with self._lock:
            job = self._by_id.get(wanted) if isinstance(wanted, str) else None
        if unknown is not None:
            response = failed(invalid(f"unknown key {unknown!r} in a cancel", "it takes cancel, request_id"))
        elif job is None:
            response = failed(invalid(f"no request is under way with request_id {wanted!r}"))
        else:
            job.cancel.set()
            response = {"ok": True, "result": f"cancel passed on: {wanted}"}
        name = request_id_of(request)
        return {**response, "request_id": name} if name else response

    def _refuse(self, request: Request, problem: Response) -> None:
        self._desk.record(request, problem)
        name = request_id_of(request)
        self._write({**problem, "request_id": name} if name else problem)

    # ---- out ----

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                response: dict[str, Any] = self._desk.call(job.request, job.cancel)
                with self._lock:  # before the answer: whoever has it may use the id again
                    self._leave(job)
                self._write(response)
            finally:
                with self._lock:
                    self._under_way.discard(job)
                    self._idle += 1
                os.eventfd_write(self._changed, 1)

    def _leave(self, job: Job) -> None:
        self._bytes -= job.size
        name = request_id_of(job.request)
        if name:
            self._by_id.pop(name, None)

    def _write(self, response: Response) -> None:
        line = encode(response) + b"\n"
        with self._writing:
            try:
                write_all(self._sink, line)
            except OSError:
                return  # nobody reads any more; the reader sees it and ends everything
