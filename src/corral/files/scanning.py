"""Scanning: looking through a tree, or one file, for what is in it.

Every directory is opened from the anchor itself; its files are opened from its descriptor. No link is followed, nothing
waits for the other end of a FIFO, and what is sensitive or hidden is not met. What vanishes meanwhile is passed over.
"""

from __future__ import annotations

import os
import stat

from corral.files.access import refuse_unless_readable
from corral.files.content import CHUNK
from corral.paths.opening import DIRECTORY, LIST, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from corral.files.access import Access, Spot
    from corral.paths.names import Names

ONE_FILE = READ | os.O_NOFOLLOW


class Level:
    """One directory: its names below the anchor, and what is in it, by name. Take out of ``directories`` what is not to
    be entered. Its descriptor is open until the next level is asked for."""

    __slots__ = ("directories", "fd", "files", "names", "others")

    def __init__(self, fd: int, names: Names) -> None:
        self.fd = fd
        self.names = names
        self.directories: list[str] = []
        self.files: list[str] = []
        self.others: list[str] = []


class Scan:
    """``top``: the names of where it begins, links followed. ``is_file``: that is one file, not a directory."""

    def __init__(self, access: Access, spot: Spot) -> None:
        self._access = access
        self._spot = spot
        fd, self.top = access.open(spot, READ)
        try:
            info = os.fstat(fd)
            self.is_file = not stat.S_ISDIR(info.st_mode)
            access.check_links(info, spot.given)
        finally:
            os.close(fd)

    def prefix(self, level: Level) -> str:
        """What a tool puts before the names of a level: relative to the working directory, or absolute below a further
        root."""
        below = "".join(f"{name}/" for name in level.names)
        return below if not self._spot.which else f"{self._spot.anchor.path.rstrip('/')}/{below}"

    def levels(self) -> Generator[Level, None, None]:
        """Top down, everything in the order of its name."""
        if self.is_file:
            yield from self._one_file()
            return
        anchor = self._spot.anchor
        ahead = [self.top]
        while ahead:
            names = ahead.pop()
            try:
                fd = anchor.opener(anchor.fd, "/".join(names) or ".", LIST)
            except OSError:
                if names == self.top:
                    raise
                continue
            try:
                level = self._level(fd, names)
                yield level
            finally:
                os.close(fd)
            ahead.extend((*names, name) for name in reversed(level.directories))

    def _one_file(self) -> Iterator[Level]:
        anchor, above = self._spot.anchor, self.top[:-1]
        fd = anchor.opener(anchor.fd, "/".join(above) or ".", DIRECTORY)
        try:
            level = Level(fd, above)
            level.files.append(self.top[-1])
            yield level
        finally:
            os.close(fd)

    def _level(self, fd: int, names: Names) -> Level:
        level = Level(fd, names)
        directories, files, others = level.directories, level.files, level.others
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
                elif entry.is_dir(follow_symlinks=False):
                    directories.append(entry.name)
                else:
                    others.append(entry.name)
        for kind in (directories, files, others):
            out = self._access.rules.left_out(self._spot.which, names, kind)
            if out:
                kind[:] = [name for name in kind if name not in out]
            kind.sort()
        return level

    def open(self, level: Level, name: str) -> tuple[int, os.stat_result] | None:
        """A regular file of a level, to be closed by the caller; None if it is none, or not to be read."""
        try:
            fd = os.open(name, ONE_FILE, dir_fd=level.fd)
        except OSError:
            return None
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise OSError
            if info.st_nlink > 1:
                self._access.check_links(info, name)
            refuse_unless_readable(info, name)
        except OSError:  # refusals are OSErrors too
            os.close(fd)
            return None
        return fd, info

    def content(self, level: Level, name: str, limit: int) -> bytes | None:
        """All of a file, or its first ``limit`` + 1 bytes; None as for `open`."""
        opened = self.open(level, name)
        if opened is None:
            return None
        fd, info = opened
        try:
            content = os.read(fd, min(info.st_size, limit) + 1)
            if len(content) != info.st_size and len(content) <= limit:
                content = _rest(fd, content, limit)
        except OSError:
            return None
        finally:
            os.close(fd)
        return content


def _rest(fd: int, content: bytes, limit: int) -> bytes:
    """Of a file that has more, or less, than it said."""
    pieces, got = [content], len(content)
    while got <= limit and (piece := os.read(fd, min(CHUNK, limit + 1 - got))):
        pieces.append(piece)
        got += len(piece)
    return b"".join(pieces)
