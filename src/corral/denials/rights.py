"""What this user may do by owner and mode, as a process without capabilities: what a jail cannot be blamed for."""

from __future__ import annotations

import os
import stat


def may(path: str, want: int) -> bool:
    """``want``: os.R_OK, os.W_OK, os.X_OK, or a sum of them. Root counts like anybody else: in a jail it is."""
    if os.getuid() != 0:
        return os.access(path, want)
    try:
        return all(_allows(parent, os.X_OK) for parent in _parents(path)) and _allows(path, want)
    except OSError:
        return False


def _allows(path: str, want: int) -> bool:
    info = os.stat(path)
    mode = stat.S_IMODE(info.st_mode)
    if info.st_uid == 0:
        mode >>= 6
    elif info.st_gid in (os.getgid(), *os.getgroups()):
        mode >>= 3
    return mode & want == want


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) or "/" for n in range(1, len(parts))]


def exists(path: str) -> bool | None:
    """None: this user may not look."""
    try:
        os.lstat(path)
    except PermissionError:
        return None
    except (OSError, ValueError):
        return False
    return True


def nearest(path: str) -> str:
    """The path, or the closest directory above it that is there."""
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)
    return path
