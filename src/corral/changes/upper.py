"""The upper directory of an overlay: what its entries mean. Measured on Linux 5.15 to 6.18.

A character device 0:0 is something deleted. ``opaque`` on a directory hides what the lower one has; it stands on
directories made anew where there was something, and on some that are merely new. ``redirect`` (real root only) says
which lower directory this one was before it was renamed. ``origin`` stands on what was copied up, except on files
with several names; an ordinary user's is empty. ``overlay.overlay.X`` is a program's own attribute ``overlay.X``.
"""

from __future__ import annotations

import os
import stat

from corral.changes.trees import Tree

INO32_GEN = 1  # a file handle that begins with the number of the inode
HANDLE_AT = 21  # what the kernel puts before it: version, magic, length, flags, type, uuid


class Upper(Tree):
    def __init__(self, path: str, attributes: str) -> None:
        super().__init__(path, "upper")
        self.prefix = f"{attributes}.overlay."

    def marks(self, path: str) -> Marks:
        return Marks(self.attributes(path), self.prefix)


class Marks:
    """The attributes of one entry: the overlay's own, and those that a program set."""

    def __init__(self, attributes: dict[str, bytes], prefix: str) -> None:
        self.own: dict[str, bytes] = {}
        self.program: dict[str, bytes] = {}
        for name, value in attributes.items():
            if not name.startswith(prefix):
                self.program[name] = value
            elif name.startswith(f"{prefix}overlay."):
                self.program[prefix + name[len(prefix) + len("overlay.") :]] = value
            else:
                self.own[name[len(prefix) :]] = value

    @property
    def opaque(self) -> bool:
        return self.own.get("opaque") == b"y"

    @property
    def copied_up(self) -> bool:
        return "origin" in self.own

    @property
    def origin_inode(self) -> int | None:
        """Of the lower one that this was copied from, where it can be told."""
        origin = self.own.get("origin", b"")
        if len(origin) < HANDLE_AT + 4 or origin[4] != INO32_GEN:
            return None
        return int.from_bytes(origin[HANDLE_AT : HANDLE_AT + 4], "little")

    def redirected_from(self, parent: str | None) -> str | None:
        """The lower directory that stands behind this one, if it is another than its name says. ``parent``: the one
        behind the directory above."""
        redirect = os.fsdecode(self.own.get("redirect", b""))
        if not redirect:
            return None
        if redirect.startswith("/"):
            return redirect.strip("/")
        return f"{parent}/{redirect}" if parent else redirect


def is_whiteout(info: os.stat_result) -> bool:
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0
