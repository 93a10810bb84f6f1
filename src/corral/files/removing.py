"""A whole tree of ours removed, whatever a command made of it: without permissions, or deeper than any path is long."""

from __future__ import annotations

import os

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: str) -> None:
    """Links are removed, never followed. A directory in a directory is moved to the top before it is emptied, so that
    neither the stack nor the number of open files grows with the depth."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    os.chmod(path, 0o700)
    top = os.open(path, DIRECTORY)
    try:
        moved = 0
        while names := os.listdir(top):
            for name in names:
                if not _unlinked(name, top):
                    moved = _empty(name, top, moved)
                    os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(path)


def _empty(name: str, top: int, moved: int) -> int:
    os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, DIRECTORY, dir_fd=top)
    try:
        for child in os.listdir(inner):
            if not _unlinked(child, inner):
                os.chmod(child, 0o700, dir_fd=inner)  # to be moved it must be writable itself
                moved += 1
                os.rename(child, f".moved-{os.getpid()}-{moved}", src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    return moved


def _unlinked(name: str, directory: int) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except IsADirectoryError:
        return False
    return True
