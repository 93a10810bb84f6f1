"""A write that is whole or absent: a hidden temp file beside the target, renamed over it when it is on the disk.

The temp file is locked while it is written. One that is not locked belongs to nobody any more, its writer was
killed, and the next use of the directory removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat

from corral.errors import NotAFile, NotAFileButDirectory, PathNotAllowed
from corral.files.attributes import LOOK, keep_attributes
from corral.paths.names import escapes
from corral.paths.opening import LIST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from corral.paths.parents import Parent

    Existing = Literal["replace", "refuse"]
    Links = Literal["refuse", "break"]

PREFIX = ".corral-"
RANDOM_BYTES = 8
ATTEMPTS = 100
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
RENAME_NOREPLACE = 1
# What file systems say that cannot lock a file, or sync a directory.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
NO_SYNC = (errno.EINVAL, errno.EOPNOTSUPP)

KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}


def is_temporary(name: str) -> bool:
    """Whether a name is one that we give to a file before it is whole."""
    rest = name[len(PREFIX) :]
    return (
        name.startswith(PREFIX) and len(rest) == 2 * RANDOM_BYTES and not set(rest) - set("0123456789abcdef")
    )


def refuse_unless_file(info: os.stat_result, path: str) -> None:
    kind = stat.S_IFMT(info.st_mode)
    if kind == stat.S_IFREG:
        return
    if kind == stat.S_IFLNK:
        raise escapes(path, "is a symbolic link")
    refusal = NotAFileButDirectory if kind == stat.S_IFDIR else NotAFile
    what = KINDS.get(kind, "something else")
    raise refusal(f"{path} is not a regular file but {what}", path=path, rule="regular file")


class Pending:
    """A file that is being written: ``fd`` takes its content, :meth:`commit` puts it in its place, and
    :meth:`discard`, harmless afterwards, leaves all as it was. Either closes ``parent``, which is ours from now on.

    ``old``: what is replaced. ``verify`` is called right before the rename, and raises to refuse it."""

    def __init__(self, parent: Parent, *, existing: Existing = "replace") -> None:
        self.parent = parent
        self.verify: Callable[[], None] | None = None
        self._existing = existing
        try:
            self.old = replaceable(parent, existing)
            self.fd, self._name = _new_file(parent, 0o666 if self.old is None else 0o600)
        except BaseException:
            parent.close()
            raise

    def commit(self) -> os.stat_result:
        """On the disk and in its place. Returns what fstat says of it."""
        parent = self.parent
        if self.old is not None:
            keep_attributes(parent, self.old, self.fd)
        os.fsync(self.fd)
        if self.verify is not None:
            self.verify()
        rename(parent, parent, self._existing, self._name)
        self._name = ""
        parent.keep()
        info = os.fstat(self.fd)
        sync_directory(parent.fd)
        self.discard()
        return info

    def discard(self) -> None:
        if self.fd < 0:
            return
        if self._name:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self.parent.fd)
            self._name = ""
        os.close(self.fd)
        self.fd = -1
        self.parent.close()


def write_all(fd: int, content: bytes | memoryview) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def sweep(directory: int) -> None:
    """Remove what killed writers left in a directory."""
    try:
        fd = os.open(".", LIST, dir_fd=directory)
    except OSError:
        return  # not ours to read
    try:
        for name in os.listdir(fd):
            if is_temporary(name):
                sweep_one(fd, name)
    finally:
        os.close(fd)


def sweep_one(directory: int, name: str) -> None:
    """Remove one temp file if nobody holds its lock."""
    with contextlib.suppress(OSError):
        fd = os.open(name, LOOK, dir_fd=directory)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=directory)
        finally:
            os.close(fd)


# ---- before ----


def look_at(parent: Parent) -> os.stat_result | None:
    try:
        return os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise type(error)(error.errno, error.strerror, parent.path) from None


def replaceable(parent: Parent, existing: Existing) -> os.stat_result | None:
    """What is to be replaced, if it may be."""
    info = look_at(parent)
    if info is None:
        return None
    if existing == "refuse" and not stat.S_ISLNK(info.st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), parent.path)
    refuse_unless_file(info, parent.path)
    if not may_write(parent, info):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), parent.path)
    return info


def refuse_several_names(info: os.stat_result, path: str) -> None:
    """A file that is replaced under one of its names is another one under the rest."""
    if info.st_nlink > 1:
        raise PathNotAllowed(
            f"{path} has {info.st_nlink} names; writing it would part it from the others",
            path=path,
            rule="hardlinks",
            grant='write_file(…, links="break")',
        )


def may_write(parent: Parent, info: os.stat_result) -> bool:
    """Root may write everything; that is no reason to replace what somebody protected by ``chmod -w``."""
    if os.geteuid() == 0:
        return bool(info.st_mode & stat.S_IWUSR)
    return os.access(parent.name, os.W_OK, dir_fd=parent.fd, effective_ids=True)


def _new_file(parent: Parent, mode: int) -> tuple[int, str]:
    directory = parent.fd
    for _ in range(ATTEMPTS):
        name = PREFIX + os.urandom(RANDOM_BYTES).hex()
        try:
            fd = os.open(name, NEW, mode, dir_fd=directory)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, parent.path) from None
        try:
            if _is_ours(fd):
                return fd, name
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=directory)
            os.close(fd)
            raise
        os.close(fd)
    raise OSError(errno.EAGAIN, "somebody removes every temp file at once")


def _is_ours(fd: int) -> bool:
    """Between making a file and locking it, another process may have taken it for one that was left behind."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise  # and where there are no locks nobody else gets one either
    return os.fstat(fd).st_nlink > 0


# ---- after ----


def rename(source: Parent, target: Parent, existing: Existing, name: str | None = None) -> None:
    """By descriptor. ``name``: what it is called in the source's directory, if not as the caller said."""
    old = source.name if name is None else name
    try:
        if existing == "replace":
            os.rename(old, target.name, src_dir_fd=source.fd, dst_dir_fd=target.fd)
        elif _rename_to_new(source.fd, old, target.fd, target.name):
            return
        elif stat.S_ISDIR(os.stat(old, dir_fd=source.fd, follow_symlinks=False).st_mode):
            os.rename(
                old, target.name, src_dir_fd=source.fd, dst_dir_fd=target.fd
            )  # at most over an empty one
        else:
            # A second name, which cannot be made where there is something, and the first one taken away.
            os.link(old, target.name, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
            os.unlink(old, dir_fd=source.fd)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, target.path) from None


def _rename_to_new(source: int, old: str, target: int, new: str) -> bool:
    """``renameat2`` that replaces nothing; False where there is no such thing."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(source, os.fsencode(old), target, os.fsencode(new), RENAME_NOREPLACE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(code, os.strerror(code))


def sync_directory(directory: int) -> None:
    try:
        fd = os.open(".", LIST, dir_fd=directory)
    except PermissionError:
        return  # a directory that may be written and not read
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(fd)
