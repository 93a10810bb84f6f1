"""What the probe lays out to be taken: files, sockets, a terminal, shared memory, a secret in our own memory.

Each comes with a witness that it can be reached from outside; otherwise a refusal inside would prove nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import tempfile
import time

from corral.jail import attempts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from corral.jail.site import Home

_REFUSED = (errno.EACCES, errno.EPERM, errno.EAFNOSUPPORT)


def is_readable(fd: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0, int((deadline - time.monotonic()) * 1000))))


class Bait:
    """``out_of_reach``: claims whose bait we may not even lay ourselves. We are in a jail already, and what is refused
    to us is refused to whatever we start."""

    def __init__(self, top: str) -> None:
        self.top = top
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
        self.out_of_reach: set[str] = set()
        self._undo: list[Callable[[], object]] = []
        self._given: dict[str, Any] = {}
        self._udp: socket.socket | None = None
        self._servers: dict[str, socket.socket] = {}

    def furnish(self, home: Home | None) -> None:
        """A home that starts empty gets the file that must be readable there, and not the one that must not."""
        if home is not None and not home.copied:
            _fill(os.path.join(home.layers[0].path, "plain"))

    def __enter__(self) -> Bait:
        try:
            for claim, lay in {
                "tcp": self._lay_tcp,
                "udp": self._lay_udp,
                "abstract-sockets": self._lay_abstract_socket,
                "pathname-sockets": self._lay_socket,
                "control-sockets": self._lay_control_socket,
                "terminals": lambda: self._lay_terminal("terminal"),
                "devices": lambda: self._lay_terminal("device"),
                "ipc": self._lay_shared_memory,
            }.items():
                try:
                    lay()
                except OSError as error:
                    if error.errno not in _REFUSED:
                        raise
                    self.out_of_reach.add(claim)
            self._lay_temp()
        except BaseException:
            self.__exit__()
            raise
        self._secret = ctypes.create_string_buffer(b"secret!")
        self._before = _snapshot(self.outside)
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            self._undo.pop()()

    # ---- one piece each ----

    def _listen(self, claim: str, family: int, address: Any) -> socket.socket:
        server = socket.socket(family)
        self._undo.append(server.close)
        server.bind(address)
        server.listen()
        with socket.socket(family) as witness:
            witness.connect(server.getsockname() if family == socket.AF_INET else address)
            server.accept()[0].close()
        self._servers[claim] = server
        return server

    def _lay_tcp(self) -> None:
        self._given["tcp"] = self._listen("tcp", socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]

    def _lay_udp(self) -> None:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._undo.append(server.close)
        server.bind(("127.0.0.1", 0))
        server.sendto(b"w", server.getsockname())
        if not is_readable(server.fileno(), time.monotonic() + 1) or server.recv(1) != b"w":
            raise OSError("loopback does not carry packets here")
        self._udp = server
        self._given["udp"] = server.getsockname()[1]

    def _lay_abstract_socket(self) -> None:
        self._given["abstract"] = f"corral-probe-{os.urandom(8).hex()}"
        self._listen("abstract-sockets", socket.AF_UNIX, "\0" + self._given["abstract"])

    def _lay_socket(self) -> None:
        directory = os.open(self.outside, os.O_PATH | os.O_DIRECTORY)
        try:
            # Through our own descriptor table a path of any length fits.
            self._listen("pathname-sockets", socket.AF_UNIX, f"/proc/self/fd/{directory}/socket")
        finally:
            os.close(directory)

    def _lay_control_socket(self) -> None:
        """In the host's temp directory, where agents and servers put theirs."""
        path = os.path.join(tempfile.gettempdir(), f"corral-probe-{os.urandom(4).hex()}.sock")
        self._listen("control-sockets", socket.AF_UNIX, path)
        self._undo.append(lambda: os.unlink(path))
        self._given["control"] = path

    def _lay_temp(self) -> None:
        fd, path = tempfile.mkstemp(prefix="corral-probe-")
        os.close(fd)
        self._undo.append(lambda: os.unlink(path))
        self._given["temp"] = path

    def _lay_terminal(self, name: str) -> None:
        for end in (ends := os.openpty()):
            self._undo.append(lambda end=end: os.close(end))  # type: ignore[misc]
        self._given[name] = os.ttyname(ends[1])

    def _lay_shared_memory(self) -> None:
        key = 0x43000000 | os.getpid() & 0xFFFFFF
        memory = attempts.checked(attempts.libc.shmget(key, 4096, 0o1600))
        self._undo.append(lambda: attempts.libc.shmctl(memory, 0, None))
        self._given["shm_key"] = key

    # ---- what the jail is told, and what came of it ----

    def given(self) -> dict[str, Any]:
        return {
            **self._given,
            "inside": self.inside,
            "outside": self.outside,
            "key": os.path.join(self.home, ".ssh", "id"),
            "plain": os.path.join(self.home, "plain"),
            "pid": os.getpid(),
            "address": ctypes.addressof(self._secret),
        }

    def _controls_left_traces(self) -> bool:
        made = ("new", "newdir", "newlink", "newfifo", "newsock", "b/moved", "renamed2", "b/linked")
        gone = ("doomed", "doomed-dir", "a/moved", "renamed")
        return all(_there(self.inside, *made)) and not any(_there(self.inside, *gone))

    def seen(self) -> list[tuple[str, str]]:
        """What the host itself sees of attacks that succeeded and of controls that did not, whatever the jail says."""
        found = []
        if _snapshot(self.outside) != self._before:
            found.append(("writes", "files outside were changed"))
        if not self._controls_left_traces():
            found.append(("writes", "what must work inside left no trace"))
        for claim, server in self._servers.items():
            if is_readable(server.fileno(), time.monotonic()):
                found.append((claim, "a connection arrived"))
        if self._udp is not None and is_readable(self._udp.fileno(), time.monotonic()):
            found.append(("udp", "a packet arrived"))
        return found


def _there(directory: str, *names: str) -> list[bool]:
    return [os.path.lexists(os.path.join(directory, name)) for name in names]


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
