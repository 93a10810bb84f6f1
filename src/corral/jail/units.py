"""Units: the launcher started by the user's manager instead of by us.

Nothing goes into the arguments of systemd-run, the unit, its description or the journal but what the jail is made of. A
socket is the unit's standard input: through it the warden gets its questions and tells what it sees, and only then the
command, its variables and its streams, all by descriptor. What is not as it must be ends the unit before that.
"""

from __future__ import annotations

import _socket
import contextlib
import marshal
import os
import select

from corral.errors import NotEnforceable
from corral.jail.properties import runtime_directory
from corral.jail.systemd import INSIDE, program
from corral.jail.verdict import REMEDY, Canary, problems, questions, why_it_never_came

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from corral.jail.systemd import Carrier

START_SECONDS = 20.0
STOP_SECONDS = 5.0
SIGKILL = 9
LIMITS = 16  # RLIM_NLIMITS, on every architecture
WARDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "warden.py")

# The status lines of units under way. A child that was forked without an exec must not keep one open: its end of file
# is how a unit learns that we are gone.
_lines: set[int] = set()


def _hang_up_in_child() -> None:
    while _lines:
        os.close(_lines.pop())


os.register_at_fork(after_in_child=_hang_up_in_child)


class Unit:
    """One transient unit. ``main``: the process in it that takes signals, once it was started.

    ``life``: the descriptor by which a launcher watches us. In a unit it gets one of systemd-run instead; that we are
    gone it learns from the end of ``status``, our end of its status line."""

    def __init__(
        self,
        carrier: Carrier,
        runner: Callable[..., int],
        life: int = -1,
        status: int = -1,
        deadline: float | None = None,
    ) -> None:
        self.carrier = carrier
        self.name = f"corral-{os.urandom(8).hex()}.service"
        self.main = 0
        self._runner = runner
        self._life = life
        self._status = status
        self._deadline = deadline

    def spawn(
        self,
        path: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        file_actions: Iterable[tuple[Any, ...]],
        setsigdef: Iterable[int],
        setsid: bool,
    ) -> int:
        """As ``os.posix_spawn``, for a launcher in the unit; gives back the pid of systemd-run, whose end is the
        unit's."""
        from corral.jail.launch import above_standard

        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        ours, theirs = (_socket.socket(fileno=above_standard(end.detach())) for end in (ours, theirs))
        messages = above_standard(os.memfd_create("messages", os.MFD_CLOEXEC))
        canary = None
        client = pidfd = -1
        try:
            canary = Canary(self.carrier.hidden_home)
            ours.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
            with open(WARDEN, "rb") as file:
                ours.send(file.read())
            ours.send(marshal.dumps(questions(self.carrier, canary.path), 2))
            client = self._start_client(theirs.fileno(), messages)
            theirs.close()
            pidfd = os.pidfd_open(client)
            seen = self._hear(ours, client, pidfd, messages)
            wrong = problems(self.carrier, seen, canary)
            if wrong:
                raise NotEnforceable(f"the unit does not hold: {'; '.join(wrong)}. Remedy: {REMEDY}")
            order = {
                "program": INSIDE,
                "argv": list(argv),
                "variables": {os.fsencode(n): os.fsencode(v) for n, v in environment.items()},
                "signals": list(setsigdef),
                "session": setsid,
                "umask": _umask(),
                "limits": _own_limits(),
            }
            self._give_order(ours, order, file_actions, {self._life: pidfd})
            if self._status >= 0:
                _lines.add(self._status)
            return client
        except BaseException:
            self._give_up(client)
            raise
        finally:
            if canary is not None:
                canary.remove()
            ours.close()
            theirs.close()
            for fd in (messages, pidfd):
                if fd >= 0:
                    os.close(fd)

    def _seconds(self) -> float | None:
        """When the manager ends the unit, should the launcher in it not do so at its own time."""
        return None if self._deadline is None else self._deadline + START_SECONDS

    def _start_client(self, stdin: int, messages: int) -> int:
        """In a session of its own: what a terminal sends is the command's to hear of, by way of us."""
        variables = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": runtime_directory()}
        if "DBUS_SESSION_BUS_ADDRESS" in os.environ:
            variables["DBUS_SESSION_BUS_ADDRESS"] = os.environ["DBUS_SESSION_BUS_ADDRESS"]
        actions = [(os.POSIX_SPAWN_DUP2, stdin, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, messages, n) for n in (1, 2)]
        try:
            return self._runner(
                program() or "/usr/bin/systemd-run",
                self.carrier.argv(self.name, self._seconds()),
                variables,
                file_actions=actions,
                setsigdef=(13, 25),
                setsid=True,
            )
        except FileNotFoundError:
            raise NotEnforceable("systemd-run is not installed") from None

    def _hear(self, ours: _socket.socket, client: int, pidfd: int, messages: int) -> dict[str, Any]:
        """What the warden says first. Without it nothing is known, and nothing is run."""
        poll = select.poll()
        for fd in (ours.fileno(), pidfd):
            poll.register(fd, select.POLLIN)
        happened = dict(poll.poll(int(START_SECONDS * 1000)))
        if not happened:
            raise NotEnforceable(f"the user manager did not start a unit within {START_SECONDS:g} s")
        said: bytes = b""
        ancillary: list[tuple[int, int, bytes]] = []
        if ours.fileno() in happened:
            # A unit that ends before it has read what we sent resets the connection.
            with contextlib.suppress(ConnectionResetError):
                said, ancillary, _, _ = ours.recvmsg(1 << 17, _socket.CMSG_SPACE(12))
        if not said:
            why, odd = why_it_never_came(client, messages), self.carrier.odd
            hint = f". It may be the name of {odd!r}: quotes and line breaks are too much for newer versions of systemd"
            raise NotEnforceable(why + (hint if odd else ""), path=odd or None)
        for level, kind, data in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_CREDENTIALS:
                self.main = int.from_bytes(data[:4], "little")
        if self.main <= 0:
            raise NotEnforceable("the unit runs among processes that we do not see; nothing was run")
        found = marshal.loads(said)
        assert isinstance(found, dict)
        return found

    def _give_order(
        self,
        ours: _socket.socket,
        order: dict[str, Any],
        file_actions: Iterable[tuple[Any, ...]],
        instead: dict[int, int],
    ) -> None:
        actions, fds = _as_told(file_actions, instead)
        fd = os.memfd_create("order", os.MFD_CLOEXEC)
        try:
            view = memoryview(marshal.dumps({**order, "actions": actions}, 2))
            while view:
                view = view[os.write(fd, view) :]
            os.lseek(fd, 0, os.SEEK_SET)
            packed = b"".join(number.to_bytes(4, "little") for number in (fd, *fds))
            ours.sendmsg([b"go"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])
        except OSError as error:
            raise NotEnforceable(
                f"the unit ended before it was told what to run ({error.strerror})"
            ) from None
        finally:
            os.close(fd)

    # ---- ending ----

    def let_go(self) -> None:
        _lines.discard(self._status)

    def see_to_end(self, status: int) -> None:
        """The launcher in it was asked to end all. If it does not, the manager does."""
        poll = select.poll()
        poll.register(status, select.POLLIN)
        if not poll.poll(int(STOP_SECONDS * 1000)):
            self.stop()

    def _give_up(self, client: int) -> None:
        """The warden leaves when its socket is closed; systemd-run is not needed any more."""
        if client <= 0:
            return
        try:
            os.kill(client, SIGKILL)
            os.waitpid(client, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it was collected already
        self.stop()

    def stop(self) -> None:
        """Have the manager end all that is in it. Comes back when it has, and soon if there is no such unit."""
        path = os.path.join(os.path.dirname(program() or "/usr/bin/x"), "systemctl")
        null = [(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_RDWR, 0) for n in (0, 1, 2)]
        variables = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": runtime_directory()}
        argv = ["systemctl", "--user", "stop", self.name]
        try:
            pid = os.posix_spawn(path, argv, variables, file_actions=null, setsid=True)
        except FileNotFoundError:
            return
        pidfd = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if not poll.poll(int(STOP_SECONDS * 1000)):
            os.kill(pid, SIGKILL)
        os.waitpid(pid, 0)
        os.close(pidfd)


# ---- what the launcher takes over from us ----


def _as_told(
    file_actions: Iterable[tuple[Any, ...]], instead: dict[int, int]
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """File actions in the warden's words, and the descriptors to send along. A descriptor that an earlier action makes
    over there is copied there."""
    actions: list[tuple[Any, ...]] = []
    fds: list[int] = []
    made: set[int] = set()
    for kind, *operands in file_actions:
        if kind == os.POSIX_SPAWN_OPEN:
            target, path, flags, mode = operands
            actions.append(("open", target, path, flags, mode))
            made.add(target)
            continue
        source, target = operands
        if source in made:
            actions.append(("copy", target, source))
            continue
        source = instead.get(source, source)
        if source not in fds:
            fds.append(source)
        actions.append(("given", target, fds.index(source)))
    return actions, fds


def _umask() -> int:
    with open("/proc/self/status") as file:
        return next((int(line.split()[1], 8) for line in file if line.startswith("Umask:")), 0o022)


def _own_limits() -> list[tuple[int, int, int]]:
    import resource

    return [(number, *resource.getrlimit(number)) for number in range(LIMITS)]
