"""The file half of an environment: the same policy as its commands, beneath the same roots.

Paths are relative to the first root, or absolute below one of them.
"""

from __future__ import annotations

import errno
import os
import stat

from corral.files.access import Access
from corral.files.atomic import (
    is_temporary,
    look_at,
    refuse_unless_file,
    rename,
    replaceable,
    sweep_one,
    sync_directory,
    write_all,
)
from corral.files.content import pieces_of, read_all
from corral.files.rules import FileRules
from corral.paths.names import components, escapes
from corral.paths.opening import DIRECTORY, LIST, O_PATH
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import IO, Literal, overload

    from corral.files.access import AnyPath, HardLinks
    from corral.files.atomic import Existing, Links
    from corral.files.content import Content
    from corral.files.handles import WriteHandle
    from corral.files.stamps import Stamps
    from corral.files.view import View
    from corral.paths.beneath import Anchor
    from corral.policy import Policy

    WriteMode = Literal["w", "wb", "x", "xb"]


class Entry(Record):
    """``kind``: file, directory, link or other."""

    name: str
    kind: str


class FileHalf:
    """``anchors``: the roots, the first one the working directory; they are closed by whoever made them.
    ``read_only``, ``hidden``: absolute paths the host adds to the policy's own. ``sensitive``: further names that hold
    secrets. ``hardlinks`` "check": a file with several names is refused if another of them is sensitive; "refuse":
    always. ``stamps``: where it is remembered what was read, so that it is not written over once somebody else
    has changed it. ``view``: what may be read, and written, beyond the roots; None: nothing."""

    def __init__(
        self,
        anchors: Sequence[Anchor],
        policy: Policy,
        *,
        read_only: Iterable[str] = (),
        hidden: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        hardlinks: HardLinks = "check",
        stamps: Stamps | None = None,
        view: View | None = None,
    ) -> None:
        places = (*anchors, *view.scratch, *view.readable) if view is not None else tuple(anchors)
        rules = FileRules(places, policy, read_only=read_only, hidden=hidden, more=sensitive, view=view)
        self._access = Access(places, rules, hardlinks, stamps, len(anchors))

    @property
    def working_dir(self) -> str:
        return self._access.anchors[0].path

    # ---- reading ----

    def read_bytes(self, path: AnyPath, *, limit: int | None = None) -> bytes:
        """The whole content; FileTooLarge if there is more of it than ``limit`` bytes."""
        access = self._access
        spot = access.locate(path)
        fd, names, info = access.open_file(spot)
        try:
            content = read_all(fd, info.st_size, spot.given, limit)
        finally:
            os.close(fd)
        if access.stamps is not None:
            access.stamps.remember(access.key(spot, names), info, content)
        return content

    def read_file(self, path: AnyPath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        """As text; line ends stay as they are."""
        return self.read_bytes(path).decode(encoding, errors)

    if TYPE_CHECKING:

        @overload
        def open(self, path: AnyPath, mode: Literal["r"] = "r", *, encoding: str = "utf-8") -> IO[str]: ...
        @overload
        def open(self, path: AnyPath, mode: Literal["rb"], *, encoding: str = "utf-8") -> IO[bytes]: ...
        @overload
        def open(self, path: AnyPath, mode: WriteMode, *, encoding: str = "utf-8") -> WriteHandle: ...

    def open(
        self, path: AnyPath, mode: str = "r", *, encoding: str = "utf-8"
    ) -> IO[str] | IO[bytes] | WriteHandle:
        """``r`` and ``rb`` read; ``w``, ``wb`` and (create only) ``x``, ``xb`` write when the file is closed."""
        if mode not in ("r", "rb", "w", "wb", "x", "xb"):
            raise ValueError(f"mode {mode!r}; there is r, rb, w, wb, x and xb")
        if mode[0] != "r":
            return self._open_to_write(path, mode, None if "b" in mode else encoding)
        access = self._access
        spot = access.locate(path)
        fd, names, info = access.open_file(spot)
        if access.stamps is not None:
            access.stamps.remember(access.key(spot, names), info)
        return os.fdopen(fd, mode) if "b" in mode else os.fdopen(fd, mode, encoding=encoding, newline="")

    def stat(self, path: AnyPath) -> os.stat_result:
        """Of what is there, links followed that stay inside."""
        spot = self._access.locate(path)
        fd, _ = self._access.open(spot, O_PATH | os.O_CLOEXEC)
        try:
            info = os.fstat(fd)
        finally:
            os.close(fd)
        self._access.check_links(info, spot.given)
        return info

    def list_dir(self, path: AnyPath = ".") -> list[Entry]:
        """By name; what is sensitive or hidden is not in it."""
        spot = self._access.locate(path)
        fd, names = self._access.open(spot, LIST)
        leaves_out = self._access.leaving_out(spot)
        found = []
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if not leaves_out(names, entry.name):
                        found.append(Entry(entry.name, _kind(entry)))
                    elif is_temporary(entry.name):
                        sweep_one(fd, entry.name)
        finally:
            os.close(fd)
        return sorted(found, key=lambda entry: entry.name)

    def walk(self, path: AnyPath = ".") -> Iterator[tuple[str, list[str], list[tuple[str, os.stat_result]]]]:
        """As ``os.walk``, top down; files come with what lstat says. No link is followed."""
        from corral.paths.walking import walk

        spot = self._access.locate(path)
        fd, top = self._access.open(spot, LIST)
        os.close(fd)
        for names, directories, files in walk(spot.anchor, top, self._access.leaving_out(spot)):
            yield "/".join(names) or ".", directories, files

    def glob(self, pattern: str) -> list[str]:
        """Paths that fit, by name, relative to the working directory. ``**`` is any number of directories."""
        from corral.files.globbing import Search

        spot = self._access.locate(pattern)
        segments = tuple(components(spot.below))
        if ".." in segments:
            raise escapes(spot.given)
        found = Search(spot.anchor, self._access.reading(spot), self._access.leaving_out(spot)).paths(
            segments
        )
        return found if not spot.which else [f"{spot.anchor.path}/{path}" for path in found]

    # ---- changing ----

    def write_file(
        self,
        path: AnyPath,
        content: Content,
        *,
        existing: Existing = "replace",
        links: Links = "refuse",
        encoding: str = "utf-8",
    ) -> int:
        """The number of bytes written, all or none of them. Missing directories are made. ``existing`` "refuse":
        FileExistsError if something is there. ``links`` "break": a file with several names is replaced under this
        one and stays as it was under the others."""
        access = self._access
        spot = access.locate(path)
        with access.parent(spot, make=True) as parent:
            pending = access.pending(spot, parent, existing, links)
            try:
                for piece in pieces_of(content, encoding):
                    write_all(pending.fd, piece)
                info = pending.commit()
            finally:
                pending.discard()
            access.written(spot, parent, info)
        return info.st_size

    def _open_to_write(self, path: AnyPath, mode: str, encoding: str | None) -> WriteHandle:
        from corral.files.handles import WriteHandle

        access = self._access
        spot = access.locate(path)
        parent = access.parent(spot, make=True)
        try:
            pending = access.pending(spot, parent, "refuse" if mode[0] == "x" else "replace", "refuse")
        except BaseException:
            parent.close()
            raise

        def ended(keep: bool) -> None:
            try:
                if keep:
                    access.written(spot, parent, pending.commit())
            finally:
                pending.discard()
                parent.close()

        return WriteHandle(spot.given, mode, pending, ended, encoding)

    def make_dir(self, path: AnyPath) -> None:
        """With the directories above it. Harmless if it is there."""
        spot = self._access.locate(path)
        spot.anchor.make_directory(spot.below, self._access.changing(spot))

    def remove_file(self, path: AnyPath) -> None:
        """Anything but a directory. A link is removed itself, never what it leads to."""
        spot = self._access.locate(path)
        with self._access.parent(spot, make=False) as parent:
            info = look_at(parent)
            if info is not None and stat.S_ISDIR(info.st_mode):
                refuse_unless_file(info, spot.given)
            try:
                os.unlink(parent.name, dir_fd=parent.fd)
            except OSError as error:
                raise type(error)(error.errno, error.strerror, spot.given) from None

    def remove_tree(self, path: AnyPath) -> None:
        """A directory and all below it; nothing of it if one thing in it may not be removed."""
        spot = self._access.locate(path)
        spot.below = spot.below.rstrip("/") or spot.below
        with self._access.parent(spot, make=False) as parent:
            info = look_at(parent)
            if info is not None and stat.S_ISLNK(info.st_mode):
                raise escapes(spot.given, "is a symbolic link")
            if info is not None and not stat.S_ISDIR(info.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), spot.given)
            levels = self._access.tree(spot, parent.names)
            for names, files in reversed(levels):
                fd = spot.anchor.opener(spot.anchor.fd, "/".join(names[:-1]) or ".", DIRECTORY)
                try:
                    _empty_and_remove(spot.anchor, fd, names[-1], files)
                finally:
                    os.close(fd)

    def rename(self, source: AnyPath, target: AnyPath, *, existing: Existing = "replace") -> None:
        """A file or a directory; a directory replaces nothing."""
        access = self._access
        here, there = access.locate(source), access.locate(target)
        with access.parent(here, make=False) as old, access.parent(there, make=True) as new:
            info = look_at(old)
            if info is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), here.given)
            if stat.S_ISDIR(info.st_mode):
                existing = "refuse"
                for names, files in access.tree(here, old.names):
                    for name in ("", *files):
                        inside = (*new.names, *names[len(old.names) :], *filter(None, (name,)))
                        access.rules.check_change(there.which, inside, there.given)
            replaceable(new, existing, "break")
            rename(old, new, existing)
            new.keep()
            sync_directory(old.fd)
            sync_directory(new.fd)


def _empty_and_remove(anchor: Anchor, parent: int, name: str, files: list[str]) -> None:
    fd = anchor.opener(parent, name, DIRECTORY)
    try:
        for file in files:
            os.unlink(file, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
