"""Anchor: a directory that is held open, and everything that is done below it.

What is checked and what is used is one thing: a descriptor that was reached without leaving the anchor. Reading
may follow links that stay inside; anything that makes, replaces or removes follows none. ``..`` is never given to
the kernel: a walk goes back to a directory it has seen.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from corral.errors import CorralError, LinkLoop
from corral.paths.names import LeadsOut, components, escapes, leads_out, plain_names, raise_named
from corral.paths.opening import DIRECTORY, O_PATH, READ, best_opener, kind_of
from corral.paths.parents import Parent, unmake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from corral.paths.names import Names
    from corral.paths.opening import Opener

    # Is told every path below the anchor that a walk is about to look at, and how many of its names were looked at
    # before; raises to refuse it.
    Check = Callable[[Names, int], None]

LINKS = 40  # as the kernel
STEPS = 4096  # that many links, each a long path, would take minutes
NEW_DIRECTORY = 0o777  # less what the umask takes
MAKING_ATTEMPTS = 100


def all_is_well(_names: Names, _seen: int) -> None:
    """Where nobody wants to be asked."""


class Anchor:
    """``fd``: a descriptor of the directory, which is duplicated. ``opener`` None: the best there is."""

    def __init__(self, path: str, *, fd: int | None = None, opener: Opener | None = None) -> None:
        self.given = os.path.abspath(path)
        self.path = os.path.realpath(path)
        self.opener = opener or best_opener()
        self.fd = os.open(path, DIRECTORY) if fd is None else os.open(".", DIRECTORY, dir_fd=fd)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- reading ----

    def open(self, path: str, flags: int = READ, check: Check = all_is_well) -> tuple[int, Names]:
        """A descriptor of what is there, links followed that stay inside, and its names below the anchor."""
        names = components(path)
        if path.endswith(("/", "/.")):
            flags |= os.O_DIRECTORY
        try:
            if ".." not in names:
                check(plain := tuple(names), 0)
                try:
                    return self.opener(self.fd, "/".join(names) or ".", flags), plain
                except OSError as error:
                    if error.errno != errno.ELOOP:
                        raise
            return self._follow(path, names, flags, check)
        except OSError as error:
            if isinstance(error, CorralError):
                raise
            raise_named(error, path)

    def _follow(self, path: str, names: Sequence[str], flags: int, check: Check) -> tuple[int, Names]:
        """Name by name, each link read and walked in turn."""
        ahead = list(reversed(names))
        behind: list[str] = []
        links = steps = 0
        with _Position(self) as at:
            while ahead:
                name = ahead.pop()
                steps += 1
                if links > LINKS or steps > STEPS:
                    raise LinkLoop(f"{path}: too many symbolic links", path=path, rule="links")
                if name == "..":
                    if not behind and self.path == "/":
                        continue  # above it is itself
                    if not behind:
                        raise leads_out(path, os.path.dirname(self.path), *reversed(ahead))
                    behind.pop()
                    at.back_to(behind)
                    continue
                try:
                    check((*behind, name), len(behind))
                except LeadsOut as error:
                    raise leads_out(path, error.target, *reversed(ahead)) from None
                target = self._step(path, at, name, flags if not ahead else None, ahead)
                if isinstance(target, int):
                    return target, (*behind, name)
                if target is None:
                    behind.append(name)
                    continue
                links += 1
                if target.startswith("/"):
                    target = self._inside(path, target, ahead)
                    behind.clear()
                    at.back_to(behind)
                ahead.extend(name for name in reversed(target.split("/")) if name and name != ".")
            return self.opener(at.fd, ".", flags), tuple(behind)

    def _step(
        self, path: str, at: _Position, name: str, last: int | None, ahead: Sequence[str]
    ) -> int | str | None:
        """The last name: its descriptor. A directory on the way: None, and the position is there. A link: its text."""
        try:
            fd = self.opener(at.fd, name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if last is None else last)
        except FileNotFoundError:
            if ".." in ahead:
                raise escapes(path, "goes back from a directory that is not there") from None
            raise
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return self._link_text(at.fd, name)
        if last is not None:
            return fd
        kind = kind_of(fd)
        if kind == stat.S_IFDIR:
            at.move(fd)
            return None
        os.close(fd)
        if kind != stat.S_IFLNK:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return self._link_text(at.fd, name)

    def _link_text(self, at: int, name: str) -> str:
        try:
            return os.readlink(name, dir_fd=at)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return name  # no link any more: look at it again

    def _inside(self, path: str, target: str, ahead: Sequence[str]) -> str:
        """An absolute link, as a path from the anchor."""
        for top in (self.path, self.given):
            if target == top or target.startswith(top.rstrip("/") + "/"):
                return target[len(top) :].lstrip("/")
        raise leads_out(path, target, *reversed(ahead))

    # ---- changing ----

    def parent(self, path: str, check: Check = all_is_well, *, make: bool = False) -> Parent:
        """Where a change is to happen: the directory, reached through no link, and the name in it. ``check`` is told
        the whole path before anything is made."""
        names = components(path)
        plain = plain_names(path, names)
        if not names or names[-1] == "..":
            raise escapes(path or ".", "is its root or above, and stays as it is")
        check(plain, 0)
        made: list[tuple[int, str]] = []
        try:
            fd = self._directory(path, names[:-1], made, make=make)
        except BaseException:
            unmake(made)
            raise
        return Parent(path, fd, names[-1], plain, made)

    def make_directory(self, path: str, check: Check = all_is_well) -> Names:
        """The directory, with those above it that are missing. Harmless if it is there."""
        names = components(path)
        plain = plain_names(path, names)
        check(plain, 0)
        made: list[tuple[int, str]] = []
        try:
            os.close(self._directory(path, names, made, make=True))
        except BaseException:
            unmake(made)
            raise
        for fd, _ in made:
            os.close(fd)
        return plain

    def _directory(self, path: str, names: Sequence[str], made: list[tuple[int, str]], *, make: bool) -> int:
        try:
            if ".." not in names:
                try:
                    return self.opener(self.fd, "/".join(names) or ".", DIRECTORY)
                except FileNotFoundError:
                    if not make:
                        raise
            return self._descend(path, names, made, make=make)
        except OSError as error:
            if isinstance(error, CorralError):
                raise
            raise_named(error, path)

    def _descend(self, path: str, names: Sequence[str], made: list[tuple[int, str]], *, make: bool) -> int:
        behind: list[str] = []
        with _Position(self) as at:
            for i, name in enumerate(names):
                if name == "..":
                    behind.pop()
                    at.back_to(behind)
                    continue
                try:
                    fd = self.opener(at.fd, name, DIRECTORY)
                except FileNotFoundError:
                    if ".." in names[i:]:
                        raise escapes(path, "goes back from a directory that is not there") from None
                    if not make:
                        raise
                    fd = self._make(at.fd, name, made)
                at.move(fd)
                behind.append(name)
            return at.take()

    def _make(self, at: int, name: str, made: list[tuple[int, str]]) -> int:
        for _ in range(MAKING_ATTEMPTS):
            above = os.open(".", DIRECTORY, dir_fd=at)
            try:
                os.mkdir(name, NEW_DIRECTORY, dir_fd=at)
            except BaseException as error:
                os.close(above)
                if not isinstance(error, FileExistsError):
                    raise
                # Somebody else was first; what it is shows when it is opened.
            else:
                made.append((above, name))
            with contextlib.suppress(FileNotFoundError):  # and somebody else took it back
                return self.opener(at, name, DIRECTORY)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


class _Position:
    """Where a walk stands: a descriptor of its own, or the anchor's."""

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor
        self.fd = anchor.fd

    def move(self, fd: int) -> None:
        if self.fd != self._anchor.fd:
            os.close(self.fd)
        self.fd = fd

    def back_to(self, names: Sequence[str]) -> None:
        anchor = self._anchor
        self.move(anchor.opener(anchor.fd, "/".join(names), DIRECTORY) if names else anchor.fd)

    def take(self) -> int:
        """The descriptor, to be closed by the caller."""
        fd = self.fd
        if fd == self._anchor.fd:
            return os.open(".", DIRECTORY, dir_fd=fd)
        self.fd = self._anchor.fd
        return fd

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.move(self._anchor.fd)
