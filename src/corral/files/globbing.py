"""Finding files by a pattern below an anchor. ``**`` stands for any number of directories and follows no link."""

from __future__ import annotations

import fnmatch
import os
import re

from corral.paths.opening import LIST, O_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from corral.paths.beneath import Anchor, Check
    from corral.paths.names import Names
    from corral.paths.walking import LeavesOut

    # Where a search stands, and the segments that are left to match.
    Pair = tuple[Names, tuple[str, ...]]


class Search:
    """One search. What is sensitive, hidden, outside or not readable is not found; ``check`` guards the links."""

    def __init__(self, anchor: Anchor, check: Check, leaves_out: LeavesOut) -> None:
        self._anchor = anchor
        self._check = check
        self._leaves_out = leaves_out

    def paths(self, segments: tuple[str, ...]) -> list[str]:
        found: set[Names] = set()
        start: Pair = ((), segments)
        seen, ahead = {start}, [start]
        while ahead:
            names, left = ahead.pop()
            if not left:
                found.add(names)
                continue
            for pair in self._next(names, left):
                if pair not in seen:
                    seen.add(pair)
                    ahead.append(pair)
        return sorted("/".join(names) for names in found if names)

    def _next(self, names: Names, segments: tuple[str, ...]) -> Iterator[Pair]:
        """Where one segment leads from here, and what is left of the pattern there."""
        first, rest = segments[0], segments[1:]
        if first == "**":
            yield names, rest or ("*",)
            for name, is_directory in self._entries(names):
                if is_directory:
                    yield (*names, name), segments
        elif any(c in first for c in "*?["):
            fits = re.compile(fnmatch.translate(first)).match
            for name, _ in self._entries(names):
                if fits(name):
                    yield (*names, name), rest
        elif self._exists((*names, first)):
            yield (*names, first), rest

    def _entries(self, names: Names) -> list[tuple[str, bool]]:
        try:
            fd, real = self._anchor.open("/".join(names) or ".", LIST, self._check)
        except OSError:
            return []
        try:
            with os.scandir(fd) as entries:
                return [
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry in entries
                    if not self._leaves_out(real, entry.name)
                ]
        finally:
            os.close(fd)

    def _exists(self, names: Names) -> bool:
        try:
            fd, _ = self._anchor.open("/".join(names), O_PATH | os.O_CLOEXEC, self._check)
        except OSError:
            return False
        os.close(fd)
        return True
