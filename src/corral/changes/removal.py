"""Removing a tree by descriptor: no link followed, directories that somebody closed opened first."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from corral.paths.opening import LIST


def remove(directory: int, name: str) -> None:
    """Whatever it is; harmless if it is not there."""
    try:
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(info.st_mode):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        return
    _remove_directory(directory, name)


def _remove_directory(top: int, name: str) -> None:
    """Depth first, without recursion: a program can nest deeper than an interpreter."""
    held = [top]
    names = [name]
    try:
        while names:
            try:
                fd = _open_to_empty(held[-1], names[-1])
            except FileNotFoundError:
                names.pop()
                continue
            inner = _empty(fd)
            if inner is not None:
                held.append(fd)
                names.append(inner)
                continue
            os.close(fd)
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(names[-1], dir_fd=held[-1])
            names.pop()
            if len(held) > 1 and names:
                os.close(held.pop())
    finally:
        for fd in held[1:]:
            os.close(fd)


def _open_to_empty(directory: int, name: str) -> int:
    try:
        fd = os.open(name, LIST | os.O_NOFOLLOW, dir_fd=directory)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=directory)
        return os.open(name, LIST | os.O_NOFOLLOW, dir_fd=directory)
    if not os.fstat(fd).st_mode & stat.S_IWUSR or not os.fstat(fd).st_mode & stat.S_IXUSR:
        with contextlib.suppress(PermissionError):
            os.fchmod(fd, 0o700)
    return fd


def _empty(fd: int) -> str | None:
    """Everything but directories; the name of one that is there."""
    inner = None
    with os.scandir(fd) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if is_directory:
            inner = name
            continue
        try:
            os.unlink(name, dir_fd=fd)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
    return inner
