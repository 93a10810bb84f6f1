"""What a file that is replaced hands on to the new one: owner, mode, access list, extended attributes."""

from __future__ import annotations

import contextlib
import os

from corral.paths.opening import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.paths.parents import Parent

LOOK = READ | os.O_NOFOLLOW
# Bits that a new content does not inherit: who trusted the old one did not see this one.
KEPT_MODE = 0o777
LOST_ATTRIBUTES = ("security.capability", "security.ima", "security.evm")
ACCESS_LIST = "system.posix_acl_access"


def keep_attributes(parent: Parent, old: os.stat_result, fd: int) -> None:
    """Owner, extended attributes (access lists are among them) and mode of what is replaced, as far as we may."""
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
        for uid, gid in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
            with contextlib.suppress(PermissionError):
                os.fchown(fd, uid, gid)
                break
    _keep_mode(parent, old.st_mode & KEPT_MODE, fd)


def _keep_mode(parent: Parent, mode: int, fd: int) -> None:
    if not hasattr(os, "listxattr"):
        os.fchmod(fd, mode)
        return
    with contextlib.suppress(OSError):
        os.removexattr(fd, ACCESS_LIST)  # what the directory gives to new files is not the old file's
    try:
        before = os.open(parent.name, LOOK, dir_fd=parent.fd)
    except OSError:
        # Its access list cannot be seen, and with one the group's bits mean something else.
        os.fchmod(fd, mode & 0o707)
        return
    try:
        os.fchmod(fd, mode)
        _copy_attributes(before, fd)
    finally:
        os.close(before)


def _copy_attributes(before: int, fd: int) -> None:
    with contextlib.suppress(OSError):  # a file system without any
        for name in os.listxattr(before):
            if name not in LOST_ATTRIBUTES:
                with contextlib.suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(before, name))
