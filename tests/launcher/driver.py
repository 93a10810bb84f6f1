"""Running the launcher: a plan as arguments, a plan by descriptor, and a run that reports on a status socket."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from corral.jail.host import launcher_path
from corral.jail.kernel import CLONE_NEW
from corral.paths.places import kernel_device

REFUSED, NOT_EXECUTABLE, NOT_FOUND, TIME_UP = 125, 126, 127, 124
SECONDS = 20.0
STATUS = "1022"
PR_SET_CHILD_SUBREAPER = 36
DIRECTORY, REGULAR, CHARACTER = 0o040000, 0o100000, 0o020000

# Bytes are taken as they are, anything else by its text.
Words = Sequence[object]
Finished = subprocess.CompletedProcess[bytes]


def as_bytes(words: Words) -> list[bytes]:
    return [word if isinstance(word, bytes) else os.fsencode(str(word)) for word in words]


def launch(plan: Words, command: Words, **options: Any) -> Finished:
    """The plan as arguments; what the launcher and the command printed, and how it ended."""
    return launch_words([*plan, "--", *command], **options)


def launch_words(words: Words, **options: Any) -> Finished:
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": SECONDS, **options}
    return subprocess.run([launcher_path().encode(), *as_bytes(words)], **options)


def launch_file(content: bytes, **options: Any) -> Finished:
    """The plan by descriptor, exactly these bytes."""
    fd = os.memfd_create("plan")
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        pass_fds = (fd, *options.pop("pass_fds", ()))
        return launch_words(["--plan-fd", fd], pass_fds=pass_fds, **options)
    finally:
        os.close(fd)


def python(code: str, *arguments: str | Path) -> list[str]:
    """A command that runs these lines."""
    return [sys.executable, "-I", "-S", "-c", code, *map(str, arguments)]


_LIST_DESCRIPTORS = """
import json, os
held = {}
for number in os.listdir("/proc/self/fd"):
    try:
        held[number] = os.readlink("/proc/self/fd/" + number)
    except FileNotFoundError:
        pass  # the descriptor of the listing itself
print(json.dumps(held))
"""
LIST_DESCRIPTORS = python(_LIST_DESCRIPTORS)


def held_descriptors(done: Finished) -> dict[int, str]:
    """What a run of LIST_DESCRIPTORS says it was given."""
    assert done.returncode == 0, done
    return {int(number): target for number, target in json.loads(done.stdout).items()}


# ---- parts of plans ----


def opened(slot: int, path: str | Path, kind: int = DIRECTORY) -> list[object]:
    """Open what is at the path now, whatever it is."""
    return ["open", slot, "/", str(path), 0, kind, "-", "-"]


def pinned(slot: int, path: Path) -> list[object]:
    """Open it, and refuse if it is another one by then."""
    info = path.lstat()
    device = kernel_device(info.st_dev)
    return ["open", slot, "/", str(path), 0, info.st_mode & 0o170000, device, info.st_ino]


def namespaces(*kinds: str) -> list[object]:
    """A user namespace with us in it, and these others."""
    flags = sum(CLONE_NEW[kind] for kind in ("user", *kinds))
    return ["namespaces", flags, "ids", os.getuid(), os.getuid(), os.getgid(), os.getgid()]


def own_proc(mount: int = 900, onto: int = 901) -> list[object]:
    return ["mount", mount, "proc", "", 0, *opened(onto, "/proc"), "attach", mount, onto]


def jail() -> list[object]:
    """Mounts, processes and a /proc of its own, with a PID 1."""
    return [*namespaces("mnt", "pid"), *own_proc(), "init"]


def inside(steps: Words) -> list[object]:
    """Mounts of its own, these steps, and a process that stays to reap."""
    return [*namespaces("mnt"), *steps, "init"]


def tmpfs_on(place: Path, options: str = "mode=755", attrs: int = 0) -> list[object]:
    """Slot 0 the mount, slot 1 the place."""
    return ["mount", 0, "tmpfs", options, attrs, *opened(1, place), "attach", 0, 1]


# Both ways to stay and watch; what holds for one holds for the other.
KEEPERS: dict[str, list[object]] = {
    "supervise": ["supervise", 1],
    "unscoped": ["supervise", 0],
    "init": jail(),
}


def refused_step(done: Finished) -> tuple[int, int]:
    """Step and errno of the one line that the launcher printed. Nothing else was printed."""
    assert done.returncode == REFUSED, done
    assert done.stdout == b"", done
    lines = done.stderr.decode("ascii").splitlines()
    assert len(lines) == 1, lines
    told = re.fullmatch(r"corral: refused: step (\d+) \(.*\).*\berror (\d+)\)?; nothing was run", lines[0])
    assert told, lines
    return int(told[1]), int(told[2])


# ---- watched runs ----


class Watched:
    """A launch whose status lines we read, as corral's own spawner does."""

    def __init__(
        self,
        plan: Words,
        command: Words,
        *,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        self.socket, theirs = socket.socketpair()
        self._lines = b""
        with theirs:
            words = ["fd", STATUS, theirs.fileno(), "status", STATUS, *plan, "--", *command]
            self.process = subprocess.Popen(
                [launcher_path().encode(), *as_bytes(words)],
                env=env,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(), *pass_fds),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()  # ends the run, if it is still under way
        try:
            self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate(timeout=SECONDS)
            raise

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next status line; empty when there will be none."""
        self.socket.settimeout(SECONDS)
        while b"\n" not in self._lines:
            got = self.socket.recv(4096)
            if not got:
                assert self._lines == b"", "half a line"
                return ""
            self._lines += got
        line, self._lines = self._lines.split(b"\n", 1)
        return line.decode("ascii")

    def lines(self) -> list[str]:
        """All lines to the end."""
        return list(iter(self.line, ""))

    def hang_up(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def read_output(self) -> bytes:
        """Until nobody holds the write end."""
        assert self.process.stdout is not None
        return read_to_end(self.process.stdout.fileno())

    def await_output(self, expected: bytes) -> None:
        assert self.process.stdout is not None
        seen = b""
        while expected not in seen:
            assert select.select([self.process.stdout], [], [], SECONDS)[0], f"no {expected!r} in {seen!r}"
            got = os.read(self.process.stdout.fileno(), 4096)
            assert got, f"ended without {expected!r}: {seen!r}"
            seen += got


def read_to_end(fd: int) -> bytes:
    """All there is; fails if somebody still holds the other end after a while."""
    deadline, content = time.monotonic() + SECONDS, b""
    while True:
        left = max(0.0, deadline - time.monotonic())
        assert select.select([fd], [], [], left)[0], "a process still holds the other end"
        got = os.read(fd, 65536)
        if not got:
            return content
        content += got


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Orphans of the block become our children, and are waited for; not every host has a PID 1 that does."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        eventually(has_no_child)


def has_no_child() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
