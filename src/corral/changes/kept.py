"""Kept contents: what text files were before, so that a difference later has a base. Named by their digest."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable

from corral.changes.change import FILE, Change, Node
from corral.changes.layers import Layers, write_whole
from corral.changes.trees import Tree
from corral.digest import digest

KEPT = "kept"
LARGEST = 1 << 20
FICLONE = 0x40049409
SNIFFED = 8000  # as git


def is_text(content: bytes) -> bool:
    return b"\0" not in content[:SNIFFED]


def keep(layers: Layers, lower: Tree, node: Node | None, path: str) -> None:
    """The content of a text file, by reflink where the file system has that."""
    if node is None or node.kind != FILE or not node.digest or node.size > LARGEST:
        return
    directory = layers.in_sealed(KEPT)
    target = os.path.join(directory, node.digest)
    if os.path.exists(target):
        return
    os.makedirs(directory, 0o700, exist_ok=True)
    try:
        content = lower.content(path)
    except OSError:
        return  # gone meanwhile, or something else stands there
    if not is_text(content) or digest(content) != node.digest:
        return
    if not _cloned(lower, path, target):
        write_whole(target, content)


def keep_content(layers: Layers, content: bytes) -> None:
    os.makedirs(layers.in_sealed(KEPT), 0o700, exist_ok=True)
    write_whole(layers.in_sealed(KEPT, digest(content)), content)


def _cloned(lower: Tree, path: str, target: str) -> bool:
    new = f"{target}.clone"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with lower.file(path) as source:
            fcntl.ioctl(fd, FICLONE, source)
    except OSError:
        os.unlink(new)
        return False
    finally:
        os.close(fd)
    os.rename(new, target)
    return True


def kept_content(layers: Layers, node: Node | None) -> bytes | None:
    """What is kept of it, if it is what it says."""
    if node is None or not node.digest:
        return None
    try:
        with open(layers.in_sealed(KEPT, node.digest), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def forget_all_but(layers: Layers, changes: Iterable[Change]) -> None:
    wanted = {change.before.digest for change in changes if change.before is not None}
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(layers.in_sealed(KEPT)):
            if name not in wanted:
                os.unlink(layers.in_sealed(KEPT, name))
