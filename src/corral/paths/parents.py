"""Parent: the directory in which something is about to change, and what was made to get there."""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from corral.paths.names import Names


class Parent:
    """A directory in which something is about to change, and the name in it. Directories made on the way are taken
    back unless the change is kept."""

    def __init__(self, path: str, fd: int, name: str, names: Names, made: list[tuple[int, str]]) -> None:
        self.path = path
        self.fd = fd
        self.name = name
        self.names = names
        self._made = made

    def keep(self) -> None:
        for fd, _ in self._made:
            os.close(fd)
        self._made.clear()

    def close(self) -> None:
        os.close(self.fd)
        unmake(self._made)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def unmake(made: list[tuple[int, str]]) -> None:
    """Remove directories that were made for nothing; one that somebody uses meanwhile stays."""
    while made:
        fd, name = made.pop()
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=fd)
        os.close(fd)
