"""Looking at one of the two trees: what stands at a path, its digest, its attributes. No link is followed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Self

from corral.changes.change import DIRECTORY, FILE, KIND_OF, LINK, Node
from corral.digest import sha256
from corral.errors import PathEscape
from corral.paths.beneath import Anchor
from corral.paths.opening import LIST, READ
from corral.paths.parents import Parent

CHUNK = 1 << 20
SPARSE = 1 << 26  # smaller files are read with their holes
PERMISSIONS = 0o7777


class Tree:
    """A directory and everything below it. ``layer``: "upper" or "lower"."""

    def __init__(self, path: str, layer: str) -> None:
        self.anchor = Anchor(path)
        if (
            layer == "upper"
        ):  # a program may have closed its home to itself; each run begins with the real one's mode
            os.chmod(path, os.stat(path).st_mode & PERMISSIONS | 0o700)
        self.layer = layer
        self._modes: dict[str, int] = {}  # as they were before we gave ourselves more

    def close(self) -> None:
        for path in sorted(self._modes, key=len, reverse=True):
            self._take_back(path, self._modes[path])
        self._modes.clear()
        self.anchor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """A descriptor that lists."""
        fd = self._open(path, LIST)
        try:
            yield fd
        finally:
            os.close(fd)

    def _open(self, path: str, flags: int) -> int:
        anchor = self.anchor
        try:
            return anchor.opener(anchor.fd, path or ".", flags)
        except PermissionError:
            if not path or not self._make_way(path, last=True):
                raise
        try:
            return anchor.opener(anchor.fd, path, flags)
        finally:
            self._close_file(path)

    def parent(self, path: str) -> Parent:
        try:
            return self.anchor.parent(path)
        except PermissionError as error:
            if isinstance(error, PathEscape) or not self._make_way(path, last=False):
                raise
        return self.anchor.parent(path)

    # ---- what a program closed to its owner, us ----

    def _make_way(self, path: str, *, last: bool) -> bool:
        """Give ourselves the rights that we need; they are taken back with :meth:`close`. Only in what is ours."""
        if self.layer != "upper":
            return False
        names = path.split("/")
        for count in range(1, len(names) + last):
            self._give_rights("/".join(names[:count]))
        return True

    def _give_rights(self, path: str) -> None:
        with self.anchor.parent(path) as parent:
            info = os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False)
            wanted = 0o700 if stat.S_ISDIR(info.st_mode) else 0o400
            mode = info.st_mode & PERMISSIONS
            if stat.S_ISLNK(info.st_mode) or info.st_uid != os.geteuid() or mode & wanted == wanted:
                return
            self._modes.setdefault(path, mode)
            os.chmod(parent.name, mode | wanted, dir_fd=parent.fd)

    def _close_file(self, path: str) -> None:
        info = self.look(path)
        if path in self._modes and not is_directory(info):
            self._take_back(path, self._modes.pop(path))

    def _take_back(self, path: str, mode: int) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self.anchor.parent(path) as parent:
            os.chmod(parent.name, mode, dir_fd=parent.fd)

    def names(self, path: str) -> list[str]:
        """In a directory; of one that is not there or is none: nothing."""
        try:
            with self.directory(path) as fd:
                return sorted(os.listdir(fd))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return []
            raise

    def look(self, path: str) -> os.stat_result | None:
        """What lstat says; None where there is nothing, or no way to it but through a link or a file."""
        if not path:
            return os.stat(self.anchor.fd)
        try:
            with self.parent(path) as parent:
                return os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PathEscape:
            return None

    def is_blocked(self, path: str) -> bool:
        """Whether something that is no directory, a link perhaps, stands where one must be on the way."""
        names = path.split("/")
        for count in range(1, len(names)):
            info = self.look("/".join(names[:count]))
            if info is None or not is_directory(info):
                return info is not None
        return False

    def node(self, path: str, known: Node | None = None) -> Node | None:
        """What stands there, with its digest. ``known``: the same from earlier, whose digest holds if nothing moved."""
        info = self.look(path)
        return None if info is None else self.node_of(path, info, known)

    def node_of(self, path: str, info: os.stat_result, known: Node | None = None) -> Node:
        node = self.bare_node(path, info)
        if node.is_same_as(known) and known is not None and known.digest:
            return _with_digest(node, known.digest)
        return _with_digest(node, self.digest(path, node.kind))

    def bare_node(self, path: str, info: os.stat_result) -> Node:
        return Node(
            KIND_OF.get(stat.S_IFMT(info.st_mode), "device"),
            self._modes.get(path, info.st_mode & PERMISSIONS),
            0 if stat.S_ISDIR(info.st_mode) else info.st_size,
            info.st_ino,
            info.st_ctime_ns,
            info.st_mtime_ns,
            layer=self.layer,
            at=path,
            names=1 if stat.S_ISDIR(info.st_mode) else info.st_nlink,
        )

    def digest(self, path: str, kind: str) -> str:
        """Nothing for what has no content, or may not be read."""
        try:
            if kind == LINK:
                return sha256(os.fsencode(self.link_text(path))).hexdigest()
            if kind != FILE:
                return ""
            found = sha256()
            with self.file(path) as fd:
                for piece in _pieces(fd):
                    found.update(piece)
            return found.hexdigest()
        except PermissionError:
            return ""

    @contextlib.contextmanager
    def file(self, path: str) -> Iterator[int]:
        fd = self._open(path, READ | os.O_NOFOLLOW)
        try:
            yield fd
        finally:
            os.close(fd)

    def content(self, path: str) -> bytes:
        """Of a file, or the target of a link."""
        info = self.look(path)
        if info is not None and stat.S_ISLNK(info.st_mode):
            return os.fsencode(self.link_text(path))
        with self.file(path) as fd:
            pieces = []
            while piece := os.read(fd, CHUNK):
                pieces.append(piece)
        return b"".join(pieces)

    def link_text(self, path: str) -> str:
        with self.parent(path) as parent:
            return os.readlink(parent.name, dir_fd=parent.fd)

    def attributes(self, path: str) -> dict[str, bytes]:
        """Extended attributes, as far as we may see them."""
        if not path:
            return _attributes(f"/proc/self/fd/{self.anchor.fd}/.")
        with self.parent(path) as parent:
            return _attributes(f"/proc/self/fd/{parent.fd}/{parent.name}")

    # ---- a directory that goes as a whole ----

    def whole(self, path: str, info: os.stat_result) -> tuple[Node, int]:
        """A directory with all that is in it, known by a digest of names, sizes and times, and the latest ctime in
        it. Contents are not read: it may be large, and nothing is made of it but its absence."""
        found = sha256()
        entries = size = 0
        latest = info.st_ctime_ns
        for below, entry in self.below(path):
            mode = entry.st_mode
            held = 0 if stat.S_ISDIR(mode) else entry.st_size
            row = (below[len(path) + 1 :], mode, held, entry.st_ino, entry.st_mtime_ns, entry.st_ctime_ns)
            found.update(repr(row).encode(errors="surrogateescape"))
            entries, size, latest = entries + 1, size + held, max(latest, entry.st_ctime_ns)
        node = self.bare_node(path, info)
        return _with_digest(node, found.hexdigest(), entries=entries, size=size), latest

    def below(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """Every path below a directory with what lstat says of it, parents first, in order of names."""
        ahead = [path]
        while ahead:
            at = ahead.pop()
            inner: list[str] = []
            try:
                with self.directory(at) as fd:
                    for name in sorted(os.listdir(fd)):
                        below = f"{at}/{name}" if at else name
                        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                        yield below, info
                        if stat.S_ISDIR(info.st_mode):
                            inner.append(below)
            except PermissionError:
                continue  # what may not be looked into cannot be told apart by more than its directory
            ahead.extend(reversed(inner))


def _pieces(fd: int) -> Iterator[bytes]:
    """What a file holds. Of a large one that is mostly holes only what was written, and where: a program can make it
    seem larger than all disks in an instant, and nobody would live to see its end."""
    info = os.fstat(fd)
    if info.st_size < SPARSE or info.st_blocks * 512 > info.st_size // 2:
        while piece := os.read(fd, CHUNK):
            yield piece
        return
    yield f"{info.st_size}".encode()
    end = 0
    with contextlib.suppress(OSError):  # there is no more data
        while True:
            start = os.lseek(fd, end, os.SEEK_DATA)
            end = os.lseek(fd, start, os.SEEK_HOLE)
            yield f" {start} {end} ".encode()
            for at in range(start, end, CHUNK):
                yield os.pread(fd, min(CHUNK, end - at), at)


def _attributes(path: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with contextlib.suppress(OSError):
        for name in os.listxattr(path, follow_symlinks=False):
            with contextlib.suppress(OSError):
                found[name] = os.getxattr(path, name, follow_symlinks=False)
    return found


def _with_digest(node: Node, digest: str, entries: int = 0, size: int | None = None) -> Node:
    return Node(
        node.kind,
        node.mode,
        node.size if size is None else size,
        node.inode,
        node.ctime_ns,
        node.mtime_ns,
        digest,
        node.layer,
        node.at,
        entries,
        node.names,
    )


def is_directory(info: os.stat_result | None) -> bool:
    return info is not None and KIND_OF.get(stat.S_IFMT(info.st_mode)) == DIRECTORY
