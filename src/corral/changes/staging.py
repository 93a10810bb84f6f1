"""Making what is to be applied, under a name of ours beside the place where it is to stand."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable

from corral.changes.change import DIRECTORY, FILE, LINK, Change, Node
from corral.changes.kept import FICLONE
from corral.changes.trees import CHUNK, Tree
from corral.files.atomic import NEW, write_all
from corral.files.attributes import keep_attributes
from corral.paths.parents import Parent

WORLD_WRITES = 0o002
COPY_AT_ONCE = 1 << 30

Tick = Callable[[], None]


def normal_mode(after: Node, before: Node | None) -> int:
    """No set-uid, set-gid or sticky bit, and nothing that everybody may write unless it was so before."""
    mode = after.mode & 0o777
    if before is None or not before.mode & WORLD_WRITES:
        mode &= ~WORLD_WRITES
    return mode


def stage_file(
    tree: Tree, change: Change, parent: Parent, name: str, old: os.stat_result | None, partial: bytes | None
) -> None:
    """``old``: the file that it will replace, whose owner and attributes it takes over."""
    after = change.after
    assert after is not None
    fd = os.open(name, NEW, 0o600, dir_fd=parent.fd)
    try:
        if partial is not None:
            write_all(fd, partial)
        else:
            with tree.file(after.at) as source:
                _copy(source, fd)
        if old is not None and stat.S_ISREG(old.st_mode):
            keep_attributes(parent, old, fd)
        os.fchmod(fd, normal_mode(after, change.before))
        if partial is None:
            os.utime(fd, ns=(after.mtime_ns, after.mtime_ns))
    finally:
        os.close(fd)


def stage_link(tree: Tree, after: Node, directory: int, name: str) -> None:
    os.symlink(tree.link_text(after.at), name, dir_fd=directory)


class StagedDirectory:
    """A directory and everything chosen below it, built under one name and put in its place at once."""

    def __init__(
        self,
        tree_of: Callable[[Node], Tree],
        top: Change,
        chosen: list[Change],
        partial: dict[str, bytes],
        tick: Tick,
    ) -> None:
        self._tree_of = tree_of
        self._top = top
        self._chosen = chosen
        self._partial = partial
        self._tick = tick

    def make(self, parent: Parent, name: str) -> None:
        os.mkdir(name, 0o700, dir_fd=parent.fd)
        modes: list[tuple[str, Change]] = [("", self._top)]
        for change in self._chosen:
            below = change.path[len(self._top.path) + 1 :]
            with _Place(parent.fd, name, below) as (fd, last):
                self._one(change, fd, last)
            if change.is_directory:
                modes.append((below, change))
            self._tick()
        for below, change in reversed(modes):
            assert change.after is not None
            with _Place(parent.fd, name, below) as (fd, last):
                inherited = os.stat(last, dir_fd=fd, follow_symlinks=False).st_mode & stat.S_ISGID
                os.chmod(last, normal_mode(change.after, None) | inherited, dir_fd=fd)

    def _one(self, change: Change, directory: int, name: str) -> None:
        after = change.after
        assert after is not None
        if after.kind == DIRECTORY:
            os.mkdir(name, 0o700, dir_fd=directory)
        elif after.kind == LINK:
            stage_link(self._tree_of(after), after, directory, name)
        else:
            here = Parent(change.path, directory, name, (), [])
            stage_file(self._tree_of(after), change, here, name, None, self._partial.get(change.path))


class _Place:
    """The directory of a path below a staged one, through no link: all of it is ours and new."""

    def __init__(self, directory: int, top: str, below: str) -> None:
        *above, self._last = [top, *(below.split("/") if below else [])]
        self._fd = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            for name in above:
                flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                inner = os.open(name, flags, dir_fd=self._fd)
                os.close(self._fd)
                self._fd = inner
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> tuple[int, str]:
        return self._fd, self._last

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _copy(source: int, target: int) -> None:
    """By reflink, or inside the kernel, or by hand."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(target, FICLONE, source)
        return
    try:
        while os.copy_file_range(source, target, COPY_AT_ONCE):
            pass
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            raise
    while piece := os.read(source, CHUNK):  # from where it came to
        write_all(target, piece)


def copy_entry(tree: Tree, path: str, directory: int, name: str) -> None:
    """A file, link or directory with all below it, as it is; for places of our own."""
    info = tree.look(path)
    if info is None:
        return
    node = tree.bare_node(path, info)
    _copy_one(tree, node, directory, name)
    if node.kind != DIRECTORY:
        return
    modes = [("", node.mode)]
    for below, inner in tree.below(path):
        found = tree.bare_node(below, inner)
        relative = below[len(path) + 1 :]
        with _Place(directory, name, relative) as (fd, last):
            _copy_one(tree, found, fd, last)
        modes += [(relative, found.mode)] if found.kind == DIRECTORY else []
    for relative, mode in reversed(modes):
        with _Place(directory, name, relative) as (fd, last):
            os.chmod(last, mode, dir_fd=fd)


def _copy_one(tree: Tree, node: Node, directory: int, name: str) -> None:
    if node.kind == DIRECTORY:
        os.mkdir(name, 0o700, dir_fd=directory)
    elif node.kind == LINK:
        os.symlink(tree.link_text(node.at), name, dir_fd=directory)
    elif node.kind == FILE:
        fd = os.open(name, NEW, 0o600, dir_fd=directory)
        try:
            with tree.file(node.at) as source:
                _copy(source, fd)
            os.fchmod(fd, node.mode)
            os.utime(fd, ns=(node.mtime_ns, node.mtime_ns))
        finally:
            os.close(fd)
