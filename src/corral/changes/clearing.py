"""Taking changes out of the upper directory, so that the real ones show again, and leaving the rest as it is seen."""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Iterable

from corral.changes.change import Change, is_at_or_below
from corral.changes.removal import remove
from corral.changes.staging import copy_entry
from corral.changes.trees import Tree, is_directory
from corral.changes.upper import Upper, is_whiteout


def clear(lower: Tree, upper: Upper, gone: Iterable[Change], rest: Iterable[Change]) -> None:
    """``gone``: changes that are no more, applied or thrown away; ``rest``: those that stay. May be done twice."""
    cleared = list(gone)
    remaining = {change.path: change for change in rest}
    for change in cleared:
        _open_up(lower, upper, change.path, remaining)
    directories: set[str] = set()
    for change in cleared:
        directories.update(_ancestors(change.path))
        info = upper.look(change.path)
        if info is None:
            continue
        if is_directory(info):
            directories.add(change.path)
        else:
            _remove(upper, change.path)
    paths = sorted(remaining)
    for path in sorted(directories, key=len, reverse=True):
        if _has_at_or_below(paths, path):
            _restore_mode(lower, upper, path, remaining)
        elif is_directory(upper.look(path)):
            _remove(upper, path)


def clear_all(upper: Upper) -> None:
    with upper.directory("") as fd:
        for name in os.listdir(fd):
            remove(fd, name)


def _remove(upper: Upper, path: str) -> None:
    with upper.parent(path) as parent:
        remove(parent.fd, parent.name)


def _has_at_or_below(paths: list[str], path: str) -> bool:
    """In a sorted list."""
    if (at := bisect_left(paths, path)) < len(paths) and paths[at] == path:
        return True
    at = bisect_left(paths, f"{path}/")
    return at < len(paths) and is_at_or_below(paths[at], path)


def _restore_mode(lower: Tree, upper: Upper, path: str, remaining: dict[str, Change]) -> None:
    """A directory that stays for what is in it, and whose own change is gone."""
    if path in remaining:
        return
    real, info = lower.look(path), upper.look(path)
    if real is None or info is None or not is_directory(real) or not is_directory(info):
        return
    if stat.S_IMODE(real.st_mode) != stat.S_IMODE(info.st_mode):
        with upper.parent(path) as parent:
            os.chmod(parent.name, stat.S_IMODE(real.st_mode), dir_fd=parent.fd)


def _ancestors(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:n]) for n in range(1, len(names))]


# ---- directories that hide what is below them ----


def _open_up(lower: Tree, upper: Upper, path: str, remaining: dict[str, Change]) -> None:
    """Make every directory on the way one through which the lower one shows, entry by entry."""
    for directory in _ancestors(path):
        info = upper.look(directory)
        if info is None or not is_directory(info):
            return
        marks = upper.marks(directory)
        source = marks.redirected_from(os.path.dirname(directory))
        if source is not None:
            _fill(lower, upper, directory, source)
            _mark(upper, directory, "opaque", b"y")
            _mark(upper, directory, "redirect", None)
        if (source is not None or marks.opaque) and is_directory(lower.look(directory)):
            _unfold(lower, upper, directory, remaining)


def _unfold(lower: Tree, upper: Upper, directory: str, remaining: dict[str, Change]) -> None:
    """The same view without ``opaque``: what is deleted gets a whiteout each. What came into the lower directory
    since, and is no deletion of ours, shows."""
    mine = set(upper.names(directory))
    for name in lower.names(directory):
        path = f"{directory}/{name}"
        change = remaining.get(path)
        if name not in mine:
            if change is not None and change.after is None:
                _whiteout(upper, path)
        elif is_directory(upper.look(path)) and is_directory(lower.look(path)):
            _mark(upper, path, "opaque", b"y")
    _mark(upper, directory, "opaque", None)


def _fill(lower: Tree, upper: Upper, directory: str, source: str) -> None:
    """A directory that stands for a lower one under another name gets what it showed."""
    mine = {name: upper.look(f"{directory}/{name}") for name in upper.names(directory)}
    for name in lower.names(source):
        path, behind = f"{directory}/{name}", f"{source}/{name}"
        info = mine.get(name)
        if info is None:
            with upper.parent(path) as parent:
                copy_entry(lower, behind, parent.fd, parent.name)
        elif is_whiteout(info):
            _remove(upper, path)
        elif is_directory(info) and is_directory(lower.look(behind)):
            marks = upper.marks(path)
            inner = marks.redirected_from(source)
            if inner is not None or not marks.opaque:
                _fill(lower, upper, path, inner or behind)
                _mark(upper, path, "opaque", b"y")
                _mark(upper, path, "redirect", None)


def _whiteout(upper: Upper, path: str) -> None:
    with upper.parent(path) as parent:
        os.mknod(parent.name, stat.S_IFCHR, os.makedev(0, 0), dir_fd=parent.fd)


def _mark(upper: Upper, path: str, name: str, value: bytes | None) -> None:
    attribute = upper.prefix + name
    with upper.parent(path) as parent:
        at = f"/proc/self/fd/{parent.fd}/{parent.name}"
        if value is not None:
            os.setxattr(at, attribute, value, follow_symlinks=False)
        elif attribute in os.listxattr(at, follow_symlinks=False):
            os.removexattr(at, attribute, follow_symlinks=False)
