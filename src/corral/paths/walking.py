"""Walking a tree below an anchor: every directory opened from the anchor itself, no link followed, none held open."""

from __future__ import annotations

import contextlib
import os

from corral.paths.opening import LIST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corral.paths.beneath import Anchor
    from corral.paths.names import Names

    # Whether an entry is not to be seen: the names of its directory, its own name.
    LeavesOut = Callable[[Names, str], bool]
    # A directory's names, the directories in it, and all else in it with what lstat says.
    Level = tuple[Names, list[str], list[tuple[str, os.stat_result]]]


def walk(anchor: Anchor, top: Names, leaves_out: LeavesOut) -> Iterator[Level]:
    """Top down, as ``os.walk``: remove from the list of directories what is not to be entered. What vanishes or
    cannot be opened meanwhile is passed over; only the top itself is an error."""
    ahead = [top]
    while ahead:
        names = ahead.pop()
        try:
            fd = anchor.opener(anchor.fd, "/".join(names) or ".", LIST)
        except OSError:
            if names == top:
                raise
            continue
        try:
            level = _level(fd, names, leaves_out)
        finally:
            os.close(fd)
        yield level
        ahead.extend((*names, name) for name in reversed(level[1]))


def _level(fd: int, names: Names, leaves_out: LeavesOut) -> Level:
    directories: list[str] = []
    files: list[tuple[str, os.stat_result]] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            name = entry.name
            if leaves_out(names, name):
                continue
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    directories.append(name)
                else:
                    files.append((name, entry.stat(follow_symlinks=False)))
    return names, directories, files
