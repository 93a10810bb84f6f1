"""Which repository a directory belongs to, found without git and believed only where both ends agree.

A `.git` file names a directory in the repository, and that directory names the worktree it was made for. Whoever can
write one end only (an agent in its worktree, a downloaded archive) gets nowhere.
"""

from __future__ import annotations

import os
import stat

from corral.errors import PolicyError
from corral.jail.site import is_below
from corral.record import Record
from corral.state import homes

LONGEST_POINTER = 1 << 13


class Repository(Record):
    """``common``: the main repository's git directory. ``directory``: the one of the checkout that was asked about,
    the same but for a linked worktree."""

    common: str
    directory: str


def repository_of(start: str) -> Repository:
    """Of the nearest directory, from ``start`` upwards, that is a checkout or a bare repository."""
    path = os.path.realpath(start)
    while True:
        entry = os.path.join(path, ".git")
        if os.path.isdir(entry):
            return _trusted(os.path.realpath(entry), os.path.realpath(entry))
        if os.path.lexists(entry):
            return linked_repository(path)
        if _looks_like_git_directory(path):
            return _trusted(path, path)
        if path == "/":
            raise PolicyError(
                f"{start} is in no git repository, which `git worktree add` needs; change to one, or name it with "
                "--repository DIR",
                path=start,
            )
        path = os.path.dirname(path)


def linked_repository(worktree: str) -> Repository:
    """Of a linked worktree, if the repository knows this worktree too."""
    directory, named = pointers_of(worktree)
    common = os.path.realpath(named)
    if os.path.dirname(directory) != os.path.join(common, "worktrees"):
        raise PolicyError(
            f"{worktree}/.git names {directory}, which is no worktree of {common}", path=worktree
        )
    return _trusted(common, directory)


def pointers_of(worktree: str) -> tuple[str, str]:
    """The directory in the repository that a worktree belongs to and that knows it, and the common one it names."""
    worktree = os.path.realpath(worktree)
    pointer = os.path.join(worktree, ".git")
    directory = os.path.realpath(_pointed(pointer, "gitdir: ", worktree))
    back = _pointed(os.path.join(directory, "gitdir"), "", directory)
    if os.path.join(os.path.realpath(os.path.dirname(back)), os.path.basename(back)) != pointer:
        raise PolicyError(
            f"{pointer} names {directory}, which belongs to another worktree ({back}); `git worktree repair` mends "
            "that if you moved it yourself",
            path=pointer,
        )
    return directory, _pointed(os.path.join(directory, "commondir"), "", directory)


def _pointed(path: str, prefix: str, base: str) -> str:
    """The one path that a small pointer file holds."""
    content = plain_content(path, LONGEST_POINTER)
    if content is None:
        raise PolicyError(f"{path} is gone, or no regular file any more", path=path)
    line = os.fsdecode(content).removesuffix("\n")
    named = line.removeprefix(prefix)
    if not line.startswith(prefix) or not named or "\n" in named or "\0" in named:
        raise PolicyError(f"{path} does not say which directory it means", path=path)
    return os.path.normpath(os.path.join(base, named))


def plain_content(path: str, most: int = -1) -> bytes | None:
    """What a regular file holds; None if it is not there or is anything else. No link is followed, nothing blocks."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with open(fd, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(fd)


def _looks_like_git_directory(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "HEAD")) and all(
        os.path.isdir(os.path.join(path, name)) for name in ("objects", "refs")
    )


def _trusted(common: str, directory: str) -> Repository:
    check_ownership(common, directory)
    return Repository(common, directory)


def check_ownership(common: str, directory: str) -> None:
    if not _looks_like_git_directory(common):
        raise PolicyError(f"{common} is no git repository", path=common)
    for home in homes():
        if is_below(home, common):
            raise PolicyError(
                f"{common} is your home or holds it; a workspace cannot be cut from that", path=common
            )
    for path in dict.fromkeys(
        (common, directory, os.path.join(common, "objects"), os.path.join(common, "refs"))
    ):
        info = os.lstat(path)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise PolicyError(
                f"{path} is not a directory of yours; only its owner makes workspaces of it", path=path
            )
