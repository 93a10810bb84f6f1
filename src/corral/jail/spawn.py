"""Spawn: hand a plan to the launcher, carry input and output, and come back when the whole tree is gone."""

from __future__ import annotations

import _socket
import os
import select

from corral.errors import LaunchRefused
from corral.jail.host import launcher_path
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from corral.jail.plan import Plan, Step

SIGPIPE, SIGXFSZ = 13, 25  # Python ignores them, and that would be inherited
STATUS_SLOT, LIFE_SLOT = 1022, 1023
F_ADD_SEALS, ALL_SEALS = 1033, 0xF
CHUNK = 1 << 16


class Streams(Record):
    """``stdin`` None: nothing to read. ``merged``: standard error goes where standard output goes."""

    stdin: bytes | None
    merged: bool
    limit: int


class Tail:
    """The last ``limit`` bytes of a stream, and a count of all of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._kept = bytearray()

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self._kept += chunk
        if len(self._kept) > 2 * self.limit + CHUNK:
            del self._kept[: len(self._kept) - self.limit]

    @property
    def dropped(self) -> int:
        return max(0, self.total - self.limit)

    def content(self) -> bytes:
        return bytes(self._kept[max(0, len(self._kept) - self.limit) :])


class Outcome(Record):
    """How a run ended. ``over`` names the limit that ended it, if one did."""

    wait_status: int
    over: str
    stdout: Tail
    stderr: Tail
    cpu_seconds: float
    max_rss_kb: int


_self_pidfd: tuple[int, int] = (0, -1)


def _life() -> int:
    """A pidfd of this process for the supervisor to watch; made anew after a fork."""
    global _self_pidfd
    pid, fd = _self_pidfd
    if pid != os.getpid():
        pid = os.getpid()
        fd = os.pidfd_open(pid)
        _self_pidfd = (pid, fd)
    return fd


def _above_standard(fd: int) -> int:
    """A descriptor outside 0-2, where the child's own streams go."""
    if fd > 2:
        return fd
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    return _above_standard(reader), _above_standard(writer)


def _plan_descriptor(content: bytes) -> int:
    import fcntl

    fd = _above_standard(os.memfd_create("plan", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    fcntl.fcntl(fd, F_ADD_SEALS, ALL_SEALS)
    return fd


def control_steps(status: int, life: int, deadline: float | None) -> list[Step]:
    steps: list[Step] = [
        (("fd", str(STATUS_SLOT), str(status)), "where to report"),
        (("status", str(STATUS_SLOT)), "where to report"),
        (("fd", str(LIFE_SLOT), str(life)), "watch the caller"),
        (("life", str(LIFE_SLOT)), "end with the caller"),
        (("session",), "a session without the caller's terminal"),
    ]
    if deadline is not None:
        steps.append((("deadline", str(max(1, round(deadline * 1000)))), f"at most {deadline:g} s"))
    return steps


_leaving: list[int] = []


def reap_leaving(*, wait: bool = False) -> None:
    """Collect supervisors that have said their last word."""
    for _ in range(len(_leaving)):
        try:
            pid = _leaving.pop(0)
        except IndexError:
            return  # another thread was faster
        try:
            if os.waitpid(pid, 0 if wait else os.WNOHANG)[0] == 0:
                _leaving.append(pid)
        except ChildProcessError:
            continue  # the program collects all its children itself


class Run:
    """One launch under way. All descriptors it holds are closed when :meth:`finish` returns or raises."""

    def __init__(
        self,
        plan: Plan,
        encoded: bytes,
        environment: Mapping[str, str],
        streams: Streams,
        deadline: float | None,
    ) -> None:
        self.plan = plan
        self.streams = streams
        self.stdout, self.stderr = Tail(streams.limit), Tail(streams.limit)
        self._fds: set[int] = set()
        self._pid = 0
        self._lines = b""
        self._ended: list[bytes] | None = None
        self._over = ""
        self._failed: tuple[int, int] | None = None
        try:
            self._start(encoded, environment, deadline)
        except BaseException:
            self._close_all()
            raise

    # ---- starting ----

    def _own(self, *fds: int) -> tuple[int, ...]:
        self._fds.update(fds)
        return fds

    def _drop(self, fd: int) -> None:
        self._fds.discard(fd)
        os.close(fd)

    def _close_all(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def _start(self, encoded: bytes, environment: Mapping[str, str], deadline: float | None) -> None:
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        (self._status,) = self._own(_above_standard(ours.detach()))
        (status,) = self._own(_above_standard(theirs.detach()))
        self._control = control_steps(status, _life(), deadline)
        words = "\0".join(word for step, _ in self._control for word in step)
        (plan_fd,) = self._own(_plan_descriptor(words.encode() + b"\0" + encoded))
        self._out, out = self._own(*_pipe())
        self._err, err = (self._out, out) if self.streams.merged else self._own(*_pipe())
        actions: list[tuple[Any, ...]] = []
        self._in = -1
        if self.streams.stdin:
            stdin, self._in = self._own(*_pipe())
            actions.append((os.POSIX_SPAWN_DUP2, stdin, 0))
        else:
            stdin = -1
            actions.append((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0))
        actions += [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)]
        # A descriptor dup'ed onto itself loses close-on-exec in the child only: no other thread's child gets it.
        actions += [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in (status, plan_fd, _life(), *self.plan.passed)]
        path = launcher_path()
        self._pid = os.posix_spawn(
            path,
            (path, "--plan-fd", str(plan_fd)),
            environment,
            file_actions=actions,
            setsigdef=(SIGPIPE, SIGXFSZ),
        )
        for fd in {status, plan_fd, out, err, stdin} - {-1}:
            self._drop(fd)

    # ---- watching ----

    def finish(self) -> Outcome:
        try:
            self._watch()
        except BaseException:
            self._cancel()
            raise
        finally:
            self._close_all()
            self._reap()
        return self._outcome()

    def _reap(self) -> None:
        """The supervisor is on its way out once it has told how the run ended; it need not be waited for."""
        reap_leaving()
        if self._pid and self._ended:
            _leaving.append(self._pid)
        elif self._pid:
            self._exit = os.waitpid(self._pid, 0)[1]
        self._pid = 0

    def _cancel(self) -> None:
        """End the tree and wait until it is gone: the supervisor hangs up when it is."""
        try:
            status = _socket.socket(fileno=os.dup(self._status))
            try:
                status.shutdown(_socket.SHUT_WR)
            finally:
                status.close()
            while os.read(self._status, CHUNK):
                pass
        except OSError:
            return

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        for fd in {self._out, self._err}:
            os.set_blocking(fd, False)
            poll.register(fd, select.POLLIN)
        pending = memoryview(self.streams.stdin or b"")
        if self._in >= 0:
            os.set_blocking(self._in, False)
            poll.register(self._in, select.POLLOUT)
        while self._ended is None:
            for fd, _ in poll.poll():
                if fd == self._status:
                    self._read_status()
                elif fd == self._in:
                    pending = self._feed(pending)
                    if not pending:
                        poll.unregister(fd)
                        self._drop(fd)
                        self._in = -1
                elif not self._drain_one(fd):
                    poll.unregister(fd)
        for fd in {self._out, self._err}:
            while self._drain_one(fd):
                pass

    def _feed(self, pending: memoryview) -> memoryview:
        try:
            return pending[os.write(self._in, pending[: 1 << 20]) :]
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
        (self.stdout if fd == self._out else self.stderr).add(chunk)
        return bool(chunk)

    def _read_status(self) -> None:
        got = os.read(self._status, 4096)
        if not got and self._ended is None:
            self._ended = []  # the supervisor is gone without a word
            return
        self._lines += got
        while b"\n" in self._lines:
            line, self._lines = self._lines.split(b"\n", 1)
            word, *rest = line.split()
            if word == b"fail":
                self._failed = (int(rest[0]), int(rest[1]))
                self._ended = []
            elif word == b"over":
                self._over = rest[0].decode()
            elif word == b"end":
                self._ended = rest

    def _outcome(self) -> Outcome:
        if self._failed is not None:
            step, errno = self._failed
            if step < len(self._control):
                why = self._control[step][1]
                raise LaunchRefused(f"{why}: {os.strerror(errno)}; nothing was run", step=step, errno=errno)
            raise self.plan.refusal(step - len(self._control), errno)
        if not self._ended:
            if os.WIFEXITED(self._exit):  # it printed why: a plan it cannot read is a bug of ours
                text = self.stderr.content().decode("ascii", "replace").strip()
                raise LaunchRefused(f"the launcher refused its plan: {text}", step=-1, errno=0)
            return Outcome(self._exit, "", self.stdout, self.stderr, 0.0, 0)
        status, user, system, rss = (int(word) for word in self._ended)
        return Outcome(status, self._over, self.stdout, self.stderr, (user + system) / 1e6, rss)
