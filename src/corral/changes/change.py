"""Change: one thing that is different inside, what stood there before and what stands there now."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from corral.denials.denial import printable

FILE, DIRECTORY, LINK = "file", "directory", "symlink"
KIND_OF = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: DIRECTORY,
    stat.S_IFLNK: LINK,
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}

# kind of change: (the letter of its line, the word for it)
KINDS = {
    "added": ("A", "added"),
    "modified": ("M", "modified"),
    "deleted": ("D", "deleted"),
    "renamed": ("R", "renamed"),
    "replaced": ("T", "replaced by something of another kind, or a directory made anew"),
    "mode": ("m", "only the mode"),
    "times": ("t", "only the times"),
    "attributes": ("x", "only extended attributes"),
}


@dataclass(frozen=True, slots=True)
class Node:
    """Something in a directory tree. ``layer`` and ``at`` say where its content lies. ``digest``: sha256 of the
    content, of a link's target, or, of a directory that goes as a whole, of the list of what is in it."""

    kind: str
    mode: int
    size: int
    inode: int
    ctime_ns: int
    mtime_ns: int
    digest: str = ""
    layer: str = "lower"
    at: str = ""
    entries: int = 0
    names: int = 1

    def is_same_as(self, other: Node | None) -> bool:
        """The very same thing, untouched."""
        return other is not None and _identity(self) == _identity(other)

    def is_kind_of(self, other: Node | None) -> bool:
        return other is not None and self.kind == other.kind

    def equals(self, other: Node | None) -> bool:
        """The same content and mode, whoever wrote it."""
        return (
            other is not None
            and (self.kind, self.digest) == (other.kind, other.digest)
            and (self.kind == LINK or self.mode == other.mode)
        )


def _identity(node: Node) -> tuple[object, ...]:
    return node.kind, node.inode, node.size, node.mtime_ns, node.ctime_ns


@dataclass(frozen=True, slots=True)
class Flag:
    """Why a change would run outside later. ``rule``: which row of the table."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """``source``: what a renamed file was called. ``conflict``: what else changed it, "during" the run or "after" it,
    or what makes that impossible to tell ("doubt"), with ``why``. ``refused``: why it is never applied.
    ``attributes``: extended attributes that differ; they are listed and stay behind."""

    path: str
    kind: str
    before: Node | None
    after: Node | None
    source: str | None = None
    flags: tuple[Flag, ...] = ()
    conflict: str = ""
    why: str = ""
    refused: str = ""
    attributes: tuple[str, ...] = ()

    @property
    def runs_later(self) -> bool:
        return bool(self.flags)

    @property
    def is_directory(self) -> bool:
        node = self.after or self.before
        return node is not None and node.kind == DIRECTORY

    def line(self) -> str:
        """One line, and nothing in it that a terminal would obey."""
        shown = self.path + ("/" if self.is_directory else "")
        if self.source is not None:
            shown = f"{self.source} -> {shown}"
        notes = [self._sizes(), *self._mode_notes()]
        notes += [f"attributes {', '.join(self.attributes)}"] if self.attributes else []
        notes += [f"runs later: {flag.reason}" for flag in self.flags]
        notes += [f"CONFLICT: {self.why}"] if self.conflict else []
        notes += [f"not applied: {self.refused}"] if self.refused else []
        return printable(f"{KINDS[self.kind][0]} {shown}  ({'; '.join(note for note in notes if note)})")

    def _sizes(self) -> str:
        before, after = self.before, self.after
        if before is not None and after is not None and before.kind != after.kind:
            return f"{_sized(before)} -> {_sized(after)}"
        if before is not None and after is not None and before.kind == FILE and before.size != after.size:
            return f"{before.size} -> {after.size} bytes"
        node = after or before
        return _sized(node) if node is not None else ""

    def _mode_notes(self) -> list[str]:
        before, after = self.before, self.after
        if before is None or after is None or LINK in (before.kind, after.kind) or before.mode == after.mode:
            return []
        return [f"mode {before.mode:o} -> {after.mode:o}"]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Change:
        plain = {field.name: told[field.name] for field in fields(cls)}
        for name in ("before", "after"):
            plain[name] = None if plain[name] is None else Node(**plain[name])
        plain["flags"] = tuple(Flag(**flag) for flag in plain["flags"])
        plain["attributes"] = tuple(plain["attributes"])
        return cls(**plain)


def _sized(node: Node) -> str:
    if node.kind == FILE:
        return f"{node.size} byte{'s' if node.size != 1 else ''}"
    if node.kind == DIRECTORY and node.entries:
        return f"directory, {node.entries} in it, {node.size} bytes"
    return node.kind


def is_at_or_below(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}/")


def selects(paths: Sequence[str] | None, change: Change) -> bool:
    """Whether one of the paths names the change, a directory above it, or what it was called. None: all of them."""
    if paths is None:
        return True
    names = [change.path, *([change.source] if change.source is not None else [])]
    return any(is_at_or_below(name, top) for top in paths for name in names)
