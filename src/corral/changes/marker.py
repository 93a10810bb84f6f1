"""When a run began: the ctime of a marker made just before the mount. What has a later one was changed meanwhile.

On the path of `corral run`: nothing heavy is imported here.
"""

from __future__ import annotations

import fcntl
import os
import time

from corral.changes.layers import lock_alone, open_lock, remember, write_whole
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.changes.layers import Layers

MARKER, RUN, JOURNAL = "t0", "run", "journal"
STEP_NS = 10_000_000  # what two readings of two clocks may lie apart
LONGEST_TICK = 0.1


class Run(Record):
    """``t0``: no change from before the run has that ctime or a later one. ``offset``: realtime less boottime, which
    moves only when somebody sets the clock. ``hidden``: what the jail did not see, relative to the lower directory."""

    t0: int
    offset: int
    boot: str
    hidden: tuple[str, ...] = ()

    def doubt(self) -> str:
        """Why times cannot be trusted, or nothing."""
        if self.boot != boot_id():
            return "the machine was restarted during the run"
        if clock_offset() < self.offset - STEP_NS:
            return "the clock was set back during the run"
        return ""


def begin(layers: Layers, hidden: Sequence[str] = ()) -> int:
    """Just before the mount. Returns a descriptor that says the run lives: keep it open until it has ended, in
    whichever process lives that long. A run that joins one that is under way shares its beginning."""
    fd = open_lock(layers)
    try:
        while True:
            if lock_alone(fd):
                _finish_what_was_left(layers)
                remember(layers)
                _mark(layers, hidden)
                fcntl.flock(fd, fcntl.LOCK_SH)
                return fd
            fcntl.flock(fd, fcntl.LOCK_SH)  # waits for an apply to end, and not for a run
            if os.path.exists(layers.in_sealed(RUN)):
                return fd
            fcntl.flock(fd, fcntl.LOCK_UN)
    except BaseException:
        os.close(fd)
        raise


def end_untouched(layers: Layers) -> bool:
    """When a run has ended: whether that was all, because another one goes on, or because nothing was changed and what
    was sealed before still holds. False if it has to be sealed, which takes much longer."""
    fd = open_lock(layers)
    try:
        if not lock_alone(fd):
            return True
        run = read_run(layers)
        if run is None or run.doubt() or _has_later(layers.upper, run.t0):
            return False
        os.unlink(layers.in_sealed(RUN))
        return True
    finally:
        os.close(fd)


def _has_later(top: str, t0: int) -> bool:
    """Whether anything in a directory, or it itself, was changed then or later."""
    if os.stat(top).st_ctime_ns >= t0:
        return True
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.stat(follow_symlinks=False).st_ctime_ns >= t0:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            return True  # closed to its owner, or too deep for a path: whoever seals it can look there
    return False


def _finish_what_was_left(layers: Layers) -> None:
    if os.path.exists(layers.in_sealed(JOURNAL)):
        from corral.changes.journal import recover

        recover(layers)
    if os.path.exists(layers.in_sealed(RUN)):
        from corral.changes.sealing import seal_now

        seal_now(layers)


def _mark(layers: Layers, hidden: Sequence[str]) -> None:
    """Later than every change before it, by whatever grain the file system stamps times."""
    path = layers.in_sealed(MARKER)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.utime(fd)
        first = t0 = os.fstat(fd).st_ctime_ns
        until = time.monotonic() + LONGEST_TICK
        while t0 <= first and time.monotonic() < until:
            os.utime(fd)
            t0 = os.fstat(fd).st_ctime_ns
    finally:
        os.close(fd)
    lines = [str(t0), str(clock_offset()), boot_id(), *(os.fsencode(name).hex() for name in hidden)]
    write_whole(layers.in_sealed(RUN), "\n".join(lines).encode())


def read_run(layers: Layers) -> Run | None:
    """The run that is not sealed yet."""
    try:
        with open(layers.in_sealed(RUN)) as file:
            t0, offset, boot, *hidden = file.read().split("\n")
    except FileNotFoundError:
        return None
    return Run(int(t0), int(offset), boot, tuple(os.fsdecode(bytes.fromhex(name)) for name in hidden))


def clock_offset() -> int:
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""
