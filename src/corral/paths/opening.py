"""Opening a path below a directory without following a link: one ``openat2``, or name by name where there is none.

Both give the same results, and the same errors: ELOOP where a link is met, EXDEV never, because no caller passes
``..`` or an absolute path. EAGAIN, which the kernel gives when a rename crosses its way, is tried again.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Opener = Callable[[int, str, int], int]

O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY)  # macOS has none; opening for reading is what comes nearest
DIRECTORY = O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
# Never wait for the other end of a FIFO, never make a terminal ours.
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
LIST = READ | os.O_DIRECTORY

# Linux 5.6; one number on all architectures.
SYS_OPENAT2 = 437
RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 0x02, 0x04, 0x08
RESOLVE = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS
ATTEMPTS = 1000
PATH_BYTES = 4096

_bound: list[Opener] = []


def best_opener() -> Opener:
    """By ``openat2`` where the kernel has it and nothing forbids it. Found out once."""
    if not _bound:
        _bound.append(_bind_openat2() or descend)
    return _bound[0]


def _bind_openat2() -> Opener | None:
    import ctypes
    import sys

    if sys.platform != "linux":
        return None

    class OpenHow(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    size = ctypes.sizeof(OpenHow)
    known: dict[int, tuple[OpenHow, int]] = {}
    get_errno, encode = ctypes.get_errno, os.fsencode

    def open_beneath(dir_fd: int, path: str, flags: int) -> int:
        how = known.get(flags)
        if how is None:
            held = OpenHow(flags, 0, RESOLVE)
            how = known[flags] = (held, ctypes.addressof(held))
        for _ in range(ATTEMPTS):
            fd: int = syscall(SYS_OPENAT2, dir_fd, encode(path), how[1], size)
            if fd >= 0:
                return fd
            code = get_errno()
            if code not in (errno.EAGAIN, errno.EINTR):
                raise OSError(code, os.strerror(code), path)
        raise OSError(errno.EAGAIN, "the directories on the way are renamed all the time", path)

    root = os.open("/", DIRECTORY)
    try:
        os.close(open_beneath(root, ".", DIRECTORY))
    except OSError:  # ENOSYS from an old kernel, EPERM from a filter that does not know it
        return None
    finally:
        os.close(root)
    return open_beneath


def descend(dir_fd: int, path: str, flags: int) -> int:
    """The same by one ``openat`` a name, each told to follow no link."""
    if len(os.fsencode(path)) >= PATH_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    *middle, last = path.split("/")
    at = dir_fd
    try:
        for name in middle:
            below = _open_name(at, name, DIRECTORY)
            if at != dir_fd:
                os.close(at)
            at = below
        return _open_name(at, last, flags)
    finally:
        if at != dir_fd:
            os.close(at)


def _open_name(at: int, name: str, flags: int) -> int:
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW, dir_fd=at)
    except NotADirectoryError:
        # O_DIRECTORY on a link says ENOTDIR; which of the two it is decides only what the error is called.
        if is_link(at, name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise
    if flags & O_PATH and not flags & (os.O_NOFOLLOW | os.O_DIRECTORY) and kind_of(fd) == stat.S_IFLNK:
        os.close(fd)  # with O_PATH the link itself was opened
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return fd


def kind_of(fd: int) -> int:
    """What is open there; closed if even that cannot be told."""
    try:
        return stat.S_IFMT(os.fstat(fd).st_mode)
    except BaseException:
        os.close(fd)
        raise


def is_link(at: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        return False
