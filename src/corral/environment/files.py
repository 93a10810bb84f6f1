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
    rename,
    replaceable,
    sweep_one,
    sync_directory,
    write_all,
)
from corral.files.content import encoder_for, pieces_of, read_all
from corral.files.rules import FileRules
from corral.files.stamps import Digest, digest_of
from corral.paths.names import components, escapes
from corral.paths.opening import DIRECTORY, LIST, O_PATH
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import IO, Literal, overload

    from corral.files.access import AnyPath, HardLinks
    from corral.files.atomic import Existing, Links
    from corral.files.changing import OpenHook, RemoveHook
    from corral.files.content import Content
    from corral.files.handles import WriteHandle
    from corral.files.scanning import Scan
    from corral.files.stamps import Stamps
    from corral.files.view import View
    from corral.paths.beneath import Anchor
    from corral.policy import Policy

    WriteMode = Literal["w", "wb", "x", "xb"]
    # Of a walk: a directory, the directories in it, and its files with what lstat says.
    Level = tuple[str, list[str], list[tuple[str, os.stat_result]]]


class Entry(Record):
    """``kind``: file, directory, link or other."""

    name: str
    kind: str


class FileHalf:
    """``anchors``: the roots, the first one the working directory; they are closed by whoever made them.
    ``read_only``, ``hidden``: absolute paths the host adds to the policy's own. ``sensitive``: further names that hold
    secrets. ``hardlinks`` "check": a file with several names is refused if another of them is sensitive; "refuse":
    always. ``stamps``: where it is remembered what was read, so that it is not written over once somebody else
    has changed it. ``view``: what may be read, and written, beyond the roots; None: nothing. ``opener`` and
    ``remover``: what the host does itself when a file is written or removed."""

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
        opener: OpenHook | None = None,
        remover: RemoveHook | None = None,
    ) -> None:
        places = (*anchors, *view.scratch, *view.readable) if view is not None else tuple(anchors)
        more = (*policy.sensitive, *sensitive)
        rules = FileRules(places, policy, read_only=read_only, hidden=hidden, more=more, view=view)
        self._access = Access(places, rules, hardlinks, stamps, len(anchors), opener, remover)

    @property
    def working_dir(self) -> str:
        return self._access.anchors[0].path

    def remembering(self, stamps: Stamps | None) -> FileHalf:
        """The same places and rules, with another memory of what was read."""
        other = object.__new__(type(self))
        other._access = self._access.remembering(stamps)
        return other

    @property
    def stamps(self) -> Stamps | None:
        """Where it is remembered what was read."""
        return self._access.stamps

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
            access.stamps.remember(access.key(spot, names), info, digest_of(content))
        return content

    def read_to_change(self, path: AnyPath, *, limit: int | None = None) -> bytes:
        """As :meth:`read_bytes`, for whoever is going to write it: StaleFile if it was read before and is not the same
        any more. From here on it must not change until it is written."""
        access = self._access
        spot = access.locate(path)
        fd, names, info = access.open_file(spot)
        try:
            content = read_all(fd, info.st_size, spot.given, limit)
        finally:
            os.close(fd)
        if access.stamps is not None:
            access.stamps.compare(access.key(spot, names), spot.given, info, content)
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

    def walk(self, path: AnyPath = ".") -> Iterator[Level]:
        """As ``os.walk``, top down; files come with what lstat says. No link is followed."""
        from corral.paths.walking import walk

        spot = self._access.locate(path)
        fd, top = self._access.open(spot, LIST)
        os.close(fd)
        for names, directories, files in walk(spot.anchor, top, self._access.leaving_out(spot)):
            yield "/".join(names) or ".", directories, files

    def scan(self, path: AnyPath = ".") -> Scan:
        """The tree, or the one file, at a path, to be looked through. Nothing of it counts as read."""
        from corral.files.scanning import Scan

        return Scan(self._access, self._access.locate(path))

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
        ready: Callable[[], None] | None = None,
    ) -> int:
        """The number of bytes written, all or none of them. Missing directories are made. ``existing`` "refuse":
        FileExistsError if something is there. ``links`` "break": a file with several names is replaced under this
        one and stays as it was under the others. ``ready`` is called when it is on the disk and not yet in its
        place."""
        access = self._access
        spot = access.locate(path)
        digest = None if access.stamps is None else Digest()
        pending = access.pending(spot, existing, links)
        try:
            for piece in pieces_of(content, encoding):
                write_all(pending.fd, piece)
                if digest is not None:
                    digest.update(piece)
            if ready is not None:
                pending.verify = _one_after_the_other(ready, pending.verify)
            info = pending.commit()
        finally:
            pending.discard()
        access.written(spot, pending, info, None if digest is None else digest.hexdigest())
        return info.st_size

    def _open_to_write(self, path: AnyPath, mode: str, encoding: str | None) -> WriteHandle:
        from corral.files.handles import WriteHandle

        access = self._access
        encoder = None if encoding is None else encoder_for(encoding)
        spot = access.locate(path)
        pending = access.pending(spot, "refuse" if mode[0] == "x" else "replace", "refuse")

        def ended(keep: bool) -> None:
            try:
                if keep:
                    access.written(spot, pending, pending.commit(), None)
            finally:
                pending.discard()

        return WriteHandle(spot.given, mode, pending, ended, encoder)

    def make_dir(self, path: AnyPath) -> None:
        """With the directories above it. Harmless if it is there."""
        spot = self._access.locate(path)
        spot.anchor.make_directory(spot.below, self._access.changing(spot))

    def remove_file(self, path: AnyPath) -> None:
        """Anything but a directory. A link is removed itself, never what it leads to."""
        self._access.remove(self._access.locate(path))

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
                if self._access.is_hooked:
                    for file in files:
                        self._access.remove(spot.at("/".join((*names, file))))
                    files = []
                fd = spot.anchor.opener(spot.anchor.fd, "/".join(names[:-1]) or ".", DIRECTORY)
                try:
                    _empty_and_remove(spot.anchor, fd, names[-1], files)
                finally:
                    os.close(fd)
            self._access.gone(spot)

    def rename(self, source: AnyPath, target: AnyPath, *, existing: Existing = "replace") -> None:
        """A file or a directory; a directory replaces nothing. Where the host opens or removes files itself, a file is
        written anew and then removed, both by it, and a directory stays."""
        access = self._access
        here, there = access.locate(source), access.locate(target)
        if access.is_hooked:
            self._rename_by_host(source, target, existing)
            return
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
            replaceable(new, existing)
            rename(old, new, existing)
            new.keep()
            sync_directory(old.fd)
            sync_directory(new.fd)
        access.gone(here)
        access.gone(there)

    def _rename_by_host(self, source: AnyPath, target: AnyPath, existing: Existing) -> None:
        spot = self._access.locate(source)
        self._access.refuse_to_remove(spot)
        with self.open(source, "rb") as content:
            self.write_file(target, content, existing=existing)
        self._access.remove(spot)


def _one_after_the_other(first: Callable[[], None], second: Callable[[], None] | None) -> Callable[[], None]:
    def both() -> None:
        first()
        if second is not None:
            second()

    return both


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
