"""Launch: a plan in the launcher's hands, and what it says on its status line until the whole tree is gone."""

from __future__ import annotations

import _socket
import os

from corral.errors import LaunchRefused
from corral.jail.fence import GROUP_SLOT
from corral.jail.host import launcher_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from corral.jail.plan import Plan, Step
    from corral.jail.stdio import Stdio
    from corral.jail.units import Unit

SIGKILL = 9
SIGPIPE, SIGXFSZ = 13, 25  # Python ignores them, and that would be inherited
STATUS_SLOT, LIFE_SLOT = 1022, 1023
F_ADD_SEALS, ALL_SEALS = 1033, 0xF
STATUS_BYTES = 4096
SMALL_PLAN = 4096  # fits into the buffer of any socket, so that nobody need read yet

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


def above_standard(fd: int) -> int:
    """A descriptor outside 0-2, where the child's own streams go."""
    if fd > 2:
        return fd
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def _plan_descriptor(content: bytes) -> int:
    import fcntl

    fd = above_standard(os.memfd_create("plan", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    fcntl.fcntl(fd, F_ADD_SEALS, ALL_SEALS)
    return fd


class Control:
    """What comes before the plan: the steps, their words as the launcher reads them, and the descriptors of both.
    ``leads``: the launcher is started as the leader of a session. ``procs``: the way into a control group, or -1."""

    def __init__(
        self,
        status: int,
        life: int,
        passed: tuple[int, ...],
        deadline: float | None,
        leads: bool,
        procs: int,
    ) -> None:
        self.steps: list[Step] = [
            (("fd", str(STATUS_SLOT), str(status)), "where to report"),
            (("status", str(STATUS_SLOT)), "where to report"),
            (("fd", str(LIFE_SLOT), str(life)), "watch the caller"),
            (("life", str(LIFE_SLOT)), "end with the caller"),
        ]
        if not leads:
            self.steps.append((("session",), "a session without the caller's terminal"))
        if deadline is not None:
            milliseconds = max(1, round(deadline * 1000))
            self.steps.append((("deadline", str(milliseconds)), f"at most {deadline:g} s"))
        if procs >= 0:
            self.steps.append((("fd", GROUP_SLOT, str(procs)), "the control group of this run"))
            passed = (procs, *passed)
        self.encoded = b"".join(word.encode() + b"\0" for step, _ in self.steps for word in step)
        # A descriptor dup'ed onto itself loses close-on-exec in the child only: no other thread's child gets it.
        self.actions = [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in (status, life, *passed)]


# One launch is much like the last: the same descriptors under the same numbers.
_controls: dict[tuple[int, int, tuple[int, ...], float | None, bool, int], Control] = {}
CONTROLS_AT_MOST = 256


def _control(
    status: int, life: int, passed: tuple[int, ...], deadline: float | None, leads: bool, procs: int
) -> Control:
    key = status, life, passed, deadline, leads, procs
    found = _controls.get(key)
    if found is None:
        if len(_controls) >= CONTROLS_AT_MOST:
            _controls.clear()
        found = _controls[key] = Control(*key)
    return found


_leaving: list[int] = []


def reap_leaving(*, wait: bool = False) -> None:
    """Collect supervisors that have said their last word; without waiting, up to the first that is still there: they
    leave in turn, and that one comes last the next time."""
    for _ in range(len(_leaving)):
        try:
            pid = _leaving.pop(0)
        except IndexError:
            return  # another thread was faster
        try:
            if os.waitpid(pid, 0 if wait else os.WNOHANG)[0] == 0:
                _leaving.append(pid)
                return
        except ChildProcessError:
            continue  # the program collects all its children itself


class Launch:
    """A launcher that was started. ``status`` is readable when it has something to say; `close` when all is over."""

    def __init__(
        self,
        plan: Plan,
        encoded: bytes,
        environment: Mapping[str, str],
        stdio: Stdio,
        deadline: float | None,
        spawn: Callable[..., int] | None = None,
    ) -> None:
        self.plan = plan
        self.status = -1
        self.over = ""
        self.running = False  # the command has been exec'ed
        self.ended: list[bytes] | None = None  # the words of its last line; none: it went without one
        self._pid = 0
        self._unit: Unit | None = None
        self._exit = 0
        self._lines = b""
        self._failed: tuple[int, int] | None = None
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self.status = above_standard(ours.detach())
        opened = [above_standard(theirs.detach())]
        try:
            self._start(opened, encoded, environment, stdio, deadline, spawn or os.posix_spawn)
        except BaseException:
            self.close()
            raise
        finally:
            for fd in opened:
                os.close(fd)
            stdio.close_theirs()

    def _start(
        self,
        opened: list[int],
        encoded: bytes,
        environment: Mapping[str, str],
        stdio: Stdio,
        deadline: float | None,
        spawn: Callable[..., int],
    ) -> None:
        status, life = opened[0], _life()
        # A unit's first process leads a session of its own already.
        leads = stdio.is_terminal or self.plan.carrier is not None
        procs = -1 if self.plan.group is None else self.plan.group.procs
        self._control = control = _control(status, life, self.plan.passed, deadline, leads, procs)
        actions: list[tuple[Any, ...]] = stdio.actions + control.actions
        content = control.encoded + encoded
        path = launcher_path()
        if len(content) <= SMALL_PLAN:
            os.write(self.status, content)
            source = [str(status), str(len(content))]
        else:
            plan_fd = _plan_descriptor(content)
            opened.append(plan_fd)
            actions.append((os.POSIX_SPAWN_DUP2, plan_fd, plan_fd))
            source = [str(plan_fd)]
        if self.plan.carrier is not None:
            from corral.jail.units import Unit

            self._unit = Unit(self.plan.carrier, spawn, life, self.status, deadline)
            spawn = self._unit.spawn
        self._pid = spawn(
            path,
            (path, "--plan-fd", *source),
            environment,
            file_actions=actions,
            setsigdef=(SIGPIPE, SIGXFSZ),
            setsid=stdio.is_terminal,
        )

    @property
    def pid(self) -> int:
        """Of the supervisor; 0 once it was let go."""
        return self._pid

    # ---- while it runs ----

    def read_status(self) -> bool:
        """Take in what it says; true once the run has ended. Blocks if there is nothing and ``status`` may block."""
        try:
            got = os.read(self.status, STATUS_BYTES)
        except ConnectionResetError:
            got = b""  # it went before it had read its plan
        if not got:
            if self.ended is None:
                self.ended = []  # the supervisor is gone without a word
            return True
        self._lines += got
        while b"\n" in self._lines:
            line, self._lines = self._lines.split(b"\n", 1)
            word, *rest = line.split()
            if word == b"run":
                self.running = True
                reap_leaving()  # while the command starts, nobody waits for us
            elif word == b"fail":
                self._failed = (int(rest[0]), int(rest[1]))
                self.ended = []
            elif word == b"over":
                self.over = rest[0].decode()
            elif word == b"end":
                self.ended = rest
        return self.ended is not None

    def ask_to_end(self) -> None:
        """Returns at once; the tree is gone when the run has ended."""
        if self.status < 0:
            return
        status = _socket.socket(fileno=os.dup(self.status))
        try:
            status.shutdown(_socket.SHUT_WR)
        except OSError:
            return  # it has hung up already
        finally:
            status.close()

    def signal(self, number: int) -> None:
        """To the supervisor, which passes it on to the command. Nothing happens if that is on its way out."""
        if self._pid and self.ended is None:
            os.kill(self._unit.main if self._unit else self._pid, number)

    # ---- afterwards ----

    def end(self) -> None:
        """End the tree and wait until it is gone: the supervisor hangs up when it is."""
        self.ask_to_end()
        try:
            os.set_blocking(self.status, True)
            if self._unit is not None:
                self._unit.see_to_end(self.status)
            while self.ended is None:
                self.read_status()
        except OSError:
            return

    def close(self) -> None:
        """The supervisor is on its way out once it has told how the run ended; it need not be waited for."""
        if self._unit is not None:
            self._unit.let_go()
        if self.status >= 0:
            os.close(self.status)
            self.status = -1
        if self._pid and self.ended:
            _leaving.append(self._pid)
        elif self._pid:
            try:
                self._exit = os.waitpid(self._pid, 0)[1]
            except ChildProcessError:
                self._exit = SIGKILL  # the program collects all its children itself
        self._pid = 0

    def verdict(self, said: Callable[[], bytes]) -> tuple[int, float, int]:
        """After `close`: wait status, seconds of processor time, most memory in KB. Raises if the command never
        ran; ``said`` gives what the launcher printed on standard error."""
        if not self.over and self.plan.group is not None and self.plan.group.passed_memory():
            self.over = "memory"
        if self._failed is not None:
            step, errno = self._failed
            control = self._control.steps
            if step < len(control):
                why = control[step][1]
                raise LaunchRefused(f"{why}: {os.strerror(errno)}; nothing was run", step=step, errno=errno)
            raise self.plan.refusal(step - len(control), errno)
        if not self.ended:
            if self._unit is not None and self.running:
                return SIGKILL, 0.0, 0  # ended by whoever ended the unit
            if os.WIFEXITED(self._exit):  # it printed why: a plan it cannot read is a bug of ours
                text = said().decode("ascii", "replace").strip()
                raise LaunchRefused(f"the launcher refused its plan: {text}", step=-1, errno=0)
            return self._exit, 0.0, 0
        status, user, system, rss = (int(word) for word in self.ended)
        return status, (user + system) / 1e6, rss
