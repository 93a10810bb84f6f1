"""Probe: show, on this host, that every claim a policy demands is held.

The real launcher is run with the policy's own plan against a throw-away directory, and what must not work is tried
beside what must. A launcher that does nothing, crashes, is killed, or leaves a single right out is found out: an
attempt that was refused counts only if its control worked, and the host looks itself at what was left behind.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time

from corral.errors import CorralError
from corral.jail import attempts
from corral.jail.enclosure import PRIVATE_PLACES, Enclosure
from corral.jail.host import launcher_path
from corral.jail.proofs import Proof
from corral.jail.site import is_below
from corral.policy import Grant, Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TIMEOUT = 20.0

_FILE_ATTEMPTS = tuple(attempts.FILES)
# claim: (attempts that must be refused, attempts that must work). A packet into an empty network is sent and arrives
# nowhere: of UDP only the host can tell.
TRIED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "writes": (_FILE_ATTEMPTS, tuple(f"may_{name}" for name in _FILE_ATTEMPTS)),
    "truncate": (("truncate",), ("may_truncate",)),
    "metadata": (("metadata", "times"), ("may_metadata", "may_times")),
    "keys": (("keys",), ("may_keys",)),
    "hidden": (("hidden",), ("may_hidden",)),
    "read-only-inside": (("read-only-inside",), ("may_read-only-inside",)),
    "project-config": (("project-config",), ("may_write-file",)),
    "processes": (("processes",), ("may_processes",)),
    "signals": (("signals",), ("may_signals",)),
    "memory": (("memory",), ("may_signals",)),
    "tcp": (("tcp", "tcp6"), ()),
    "udp": ((), ()),
    "families": (("families", "vsock"), ("may_families",)),
    "abstract-sockets": (("abstract-sockets",), ("may_families",)),
    "pathname-sockets": (("pathname-sockets",), ("may_families",)),
    "control-sockets": (("control-sockets",), ("may_families",)),
    "terminals": (("terminals",), ("may_make-reg",)),
    "terminal-input": (("terminal-input",), ("may_make-reg",)),
    "ipc": (("ipc",), ("may_make-reg",)),
    "temp": (("temp",), ("may_temp",)),
    "tree": ((), ("may_tree",)),
}


def prove(policy: Policy, backend: str, claims: tuple[str, ...], *, launcher: str | None = None) -> Proof:
    """Try these claims of the policy with this backend. Never raises; what cannot be tried is not proven."""
    try:
        with tempfile.TemporaryDirectory(prefix="probe-", dir=_visible_place()) as top, _Bait(top) as bait:
            seen, ended = _try_inside(policy, backend, claims, bait, launcher or launcher_path())
            failed = _judge(claims, seen, bait)
            if "tree" in claims and not ended:
                failed.append(("tree", "a process outlived its run"))
    except (CorralError, OSError, ValueError) as error:
        failed = [(claim, f"could not be tried: {error}") for claim in claims]
    wrong = {claim for claim, _ in failed}
    return Proof(not failed, backend, tuple(c for c in claims if c not in wrong), tuple(failed))


def _visible_place() -> str | None:
    """A directory that a jail shows read-only; private ones would hide what is tried."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = os.path.join(cache, "corral")
    try:
        os.makedirs(place, 0o700, exist_ok=True)
    except OSError:
        return None
    return place if os.access(place, os.W_OK) else None  # inside a jail only its temp directory is ours


# ---- what is laid out to be taken ----


class _Bait:
    """Files, sockets, a terminal and shared memory outside, with a witness of each that it is there to be reached."""

    def __init__(self, top: str) -> None:
        self.inside, self.outside, self.home = (
            os.path.join(top, name) for name in ("inside", "outside", "home")
        )
        for directory in (self.inside, self.outside):
            for name in ("a", "b", "doomed-dir", "narrow"):
                os.makedirs(os.path.join(directory, name))
            for name in (
                "victim",
                "doomed",
                "full",
                "full-copy",
                "renamed",
                "hidden",
                "a/moved",
                "corral.toml",
            ):
                _fill(os.path.join(directory, name))
        os.makedirs(os.path.join(self.home, ".ssh"))
        _fill(os.path.join(self.home, ".ssh", "id"))
        _fill(os.path.join(self.home, "plain"))
        self._open: list[Any] = []
        self.before = _snapshot(self.outside)

    def __enter__(self) -> _Bait:
        self.tcp = self._listen(socket.AF_INET, ("127.0.0.1", 0))
        self.abstract = f"corral-probe-{os.urandom(8).hex()}"
        self._listen(socket.AF_UNIX, "\0" + self.abstract)
        directory = os.open(self.outside, os.O_PATH | os.O_DIRECTORY)
        self._listen(socket.AF_UNIX, f"/proc/self/fd/{directory}/socket")  # a path of any length fits
        os.close(directory)
        fd, self.temp = tempfile.mkstemp(prefix="corral-probe-")
        os.close(fd)
        self.control = f"{self.temp}.sock"
        self._listen(socket.AF_UNIX, self.control)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp.setblocking(False)
        self._open.append(self.udp)
        self.udp.sendto(b"w", self.udp.getsockname())
        if not _readable(self.udp.fileno(), time.monotonic() + 1) or self.udp.recv(1) != b"w":
            raise OSError("loopback does not carry packets here")
        self.terminal_ends = os.openpty()
        self.terminal = os.ttyname(self.terminal_ends[1])
        self.shm = attempts.libc.shmget(0x43000000 | os.getpid() & 0xFFFFFF, 4096, 0o1600)
        self.secret = ctypes.create_string_buffer(b"secret!")
        self.before = _snapshot(self.outside)
        return self

    def _listen(self, family: int, address: Any) -> int:
        server = socket.socket(family)
        server.bind(address)
        server.listen()
        self._open.append(server)
        with socket.socket(family) as witness:
            witness.connect(server.getsockname() if family == socket.AF_INET else address)
        return int(server.getsockname()[1]) if family == socket.AF_INET else 0

    def __exit__(self, *_: object) -> None:
        for thing in self._open:
            thing.close()
        for end in self.terminal_ends:
            os.close(end)
        for name in (self.temp, self.control):
            os.unlink(name)
        if self.shm >= 0:
            attempts.libc.shmctl(self.shm, 0, None)

    def given(self) -> dict[str, Any]:
        return {
            "inside": self.inside,
            "outside": self.outside,
            "key": os.path.join(self.home, ".ssh", "id"),
            "plain": os.path.join(self.home, "plain"),
            "pid": os.getpid(),
            "address": ctypes.addressof(self.secret),
            "tcp": self.tcp,
            "udp": self.udp.getsockname()[1],
            "abstract": self.abstract,
            "control": self.control,
            "terminal": self.terminal,
            "temp": self.temp,
            "shm_key": 0x43000000 | os.getpid() & 0xFFFFFF,
        }

    def reached(self) -> list[tuple[str, str]]:
        """What the host itself sees of attacks that succeeded, whatever the jail says of them."""
        found = []
        if _snapshot(self.outside) != self.before:
            found.append(("writes", "files outside were changed"))
        if _readable(self.udp.fileno(), time.monotonic()):
            found.append(("udp", "a packet arrived"))
        return found


def _fill(path: str) -> None:
    with open(path, "w") as file:
        file.write("content\n")


def _snapshot(top: str) -> list[tuple[Any, ...]]:
    seen: list[tuple[Any, ...]] = []
    for directory, names, files in os.walk(top):
        for name in sorted((*names, *files)):
            info = os.lstat(os.path.join(directory, name))
            seen.append((directory, name, info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns))
    return sorted(seen)


# ---- trying ----


def _policy_for(policy: Policy, backend: str, claims: tuple[str, ...], bait: _Bait) -> Policy:
    """The policy as it is, on the bait: its mode, network and switches, and a grant for each claim that needs one."""
    grants: list[Grant] = []
    if any(is_below(bait.outside, place) for place in PRIVATE_PLACES):
        grants.append(Grant.ro(bait.outside))
    if policy.mode == "read-only":
        grants.append(Grant.rw(bait.inside))  # nothing else is writable, and a control has to write somewhere
    if "hidden" in claims:
        grants.append(Grant.hide(os.path.join(bait.outside, "hidden")))
    if "read-only-inside" in claims:
        grants.append(Grant.ro(os.path.join(bait.inside, "narrow")))
    interpreter = _interpreter()
    if any(is_below(interpreter, place) for place in PRIVATE_PLACES):
        grants += [Grant.ro(path) for path in dict.fromkeys((sys.prefix, sys.base_prefix))]
    return Policy(
        mode=policy.mode,
        network=policy.network,
        backend=backend,  # type: ignore[arg-type]
        grants=tuple(grants),
        unix_sockets=policy.unix_sockets,
        shared_memory=policy.shared_memory,
    )


def _interpreter() -> str:
    """One that the jail shows: the system's before ours, which may lie in a private directory."""
    return next((p for p in ("/usr/bin/python3", sys.executable) if os.access(p, os.X_OK)), sys.executable)


def _try_inside(
    policy: Policy, backend: str, claims: tuple[str, ...], bait: _Bait, launcher: str
) -> tuple[dict[str, str], bool]:
    """What each attempt said, and whether all that was started is gone."""
    wanted = dict.fromkeys(name for claim in claims for part in TRIED[claim] for name in part)
    if "udp" in claims:
        wanted["udp"] = None
    with open(attempts.__file__) as file:
        program = file.read()
    given = json.dumps({**bait.given(), "attempts": list(wanted)})
    argv = [_interpreter(), "-I", "-S", "-c", program, given]
    enclosure = Enclosure(
        bait.inside, _policy_for(policy, backend, claims, bait), homes=(bait.home,), prove=False
    )
    try:
        words = enclosure.plan(argv, inline=True).inline()
    finally:
        enclosure.close()
    reader, writer = os.pipe()
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
    try:
        pid = os.posix_spawn(launcher, [launcher, *words], {"PATH": "/usr/bin:/bin"}, file_actions=actions)
    finally:
        os.close(writer)
    try:
        return _listen_to(pid, reader)
    finally:
        os.close(reader)


def _listen_to(pid: int, reader: int) -> tuple[dict[str, str], bool]:
    """Read its one line, then see the stream end: whoever holds it still is a process that outlived the run."""
    deadline = time.monotonic() + TIMEOUT
    line, pidfd = b"", os.pidfd_open(pid)
    try:
        while not line.endswith(b"\n") and _readable(reader, deadline):
            got = os.read(reader, 1 << 16)
            if not got:
                break
            line += got
        if not _readable(pidfd, deadline):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ended = _readable(reader, time.monotonic() + 1) and not os.read(reader, 1)
    finally:
        os.close(pidfd)
    try:
        said = json.loads(line)
    except ValueError:
        said = {}
    return said if isinstance(said, dict) else {}, ended


def _readable(fd: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0, int((deadline - time.monotonic()) * 1000))))


def _judge(claims: tuple[str, ...], said: dict[str, str], bait: _Bait) -> list[tuple[str, str]]:
    failed: list[tuple[str, str]] = []
    for claim in claims:
        refused, worked = TRIED[claim]
        if not said or any(name not in said for name in (*refused, *worked)):
            failed.append((claim, "the jail gave no answer"))
            continue
        open_ones = [name for name in refused if said[name] == ""]
        broken = [f"{name} ({said[name]})" for name in worked if said[name] != ""]
        if open_ones:
            failed.append((claim, f"{', '.join(open_ones)} was not refused"))
        elif broken:
            failed.append((claim, f"what must work does not: {', '.join(broken)}"))
    wrong = {claim for claim, _ in failed}
    return failed + [seen for seen in bait.reached() if seen[0] in claims and seen[0] not in wrong]
