"""Moving things in one directory: what stands at a name against what we made, and back. Nothing is replaced unseen."""

from __future__ import annotations

import ctypes
import errno
import os
import stat

from corral.changes.removal import remove
from corral.changes.trees import Tree
from corral.errors import ChangeConflict
from corral.files.atomic import rename as rename_to
from corral.paths.opening import LIST
from corral.paths.parents import Parent

RENAME_EXCHANGE = 2
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def swap(parent: Parent, name: str) -> str:
    """What stands at the target against what we made. Returns the name that the old one has then."""
    try:
        exchange(parent.fd, name, parent.name)
        return name
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise conflict(parent.path) from None
        if error.errno not in NO_EXCHANGE:
            raise
    old = old_name(name)
    rename_to_new(parent, parent.name, old)
    rename_to_new(parent, name, parent.name)
    return old


def swap_back(parent: Parent, ours: str) -> None:
    try:
        exchange(parent.fd, ours, parent.name)
    except OSError as error:
        if error.errno not in NO_EXCHANGE:
            raise
        remove(parent.fd, parent.name)
        rename_to_new(parent, ours, parent.name)


def old_name(name: str) -> str:
    return f"{name}-old"


def exchange(directory: int, one: str, other: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if libc.renameat2(directory, os.fsencode(one), directory, os.fsencode(other), RENAME_EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), other)


def rename_to_new(parent: Parent, old: str, new: str) -> None:
    target = Parent(parent.path, parent.fd, new, (), [])
    try:
        rename_to(parent, target, "refuse", old)
    except (FileExistsError, FileNotFoundError):
        raise conflict(parent.path) from None
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR):
            raise conflict(parent.path) from None
        raise


def conflict(path: str) -> ChangeConflict:
    return ChangeConflict(
        f"{path} was changed outside at this very moment; nothing was applied",
        path=path,
        rule="seal",
        grant="try again",
    )


def change_mode(parent: Parent, mode: int) -> None:
    fd = os.open(parent.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent.fd)
    try:
        if not stat.S_ISLNK(os.fstat(fd).st_mode):
            os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


def inode_at(parent: Parent, name: str) -> int:
    try:
        return os.stat(name, dir_fd=parent.fd, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return 0


def sync(lower: Tree) -> None:
    """Once for all of it: a sync a file would take minutes for a large tree."""
    fd = os.open(".", LIST, dir_fd=lower.anchor.fd)
    try:
        libc = ctypes.CDLL(None)
        if not hasattr(libc, "syncfs") or libc.syncfs(fd):
            os.sync()
    finally:
        os.close(fd)
