"""Something happens right before the Nth system call of an action: the process is killed, or the call fails.

Calls are counted where Python makes them (the functions of ``os`` and ``fcntl``, the opener of an anchor), so nothing
is left to timing.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
from collections.abc import Callable
from typing import Any

CALLS = (
    *(
        "open",
        "close",
        "read",
        "write",
        "fsync",
        "fstat",
        "stat",
        "fchmod",
        "fchown",
        "rename",
        "link",
        "unlink",
    ),
    *("mkdir", "rmdir", "listdir", "access", "listxattr", "getxattr", "setxattr", "removexattr"),
)


class Injector:
    """``at``: which call; ``act`` is called there with the name of the call."""

    def __init__(
        self, at: int, act: Callable[[str, tuple[Any, ...]], None], leave: tuple[str, ...] = ()
    ) -> None:
        self.count = 0
        self._at = at
        self._act = act
        self._leave = leave
        self._undo: list[tuple[Any, str, Any]] = []

    def wrap(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            if name not in self._leave:
                self.count += 1
                if self.count == self._at:
                    self._act(name, args)
            return original(*args, **options)

        self._undo.append((owner, name, original))
        setattr(owner, name, counted)

    def __enter__(self) -> Injector:
        for name in CALLS:
            self.wrap(os, name)
        self.wrap(fcntl, "flock")
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, original in reversed(self._undo):
            setattr(owner, name, original)


_write, _kill, _getpid = os.write, os.kill, os.getpid


def die(name: str, args: tuple[Any, ...]) -> None:
    """By SIGKILL; half of what was to be written is."""
    if name == "write":
        fd, content = args
        _write(fd, bytes(content)[: len(content) // 2])
    _kill(_getpid(), signal.SIGKILL)


def no_space(name: str, args: tuple[Any, ...]) -> None:
    raise OSError(errno.ENOSPC, "injected")


def interrupt(name: str, args: tuple[Any, ...]) -> None:
    raise KeyboardInterrupt


def was_killed(action: Callable[[], object], at: int, prepare: Callable[[Injector], None]) -> bool:
    """Whether a child that does this is killed at that call; False: it came to its end before."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with Injector(at, die) as injector:
                prepare(injector)
                action()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


ctypes.CDLL(None, use_errno=True)  # loaded before anything is counted
