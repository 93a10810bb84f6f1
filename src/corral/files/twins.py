"""Twins: other names of files that are sensitive or hidden. A hard link does not show what else it is called, so
those are looked up."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from corral.paths.opening import LIST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.files.rules import FileRules
    from corral.paths.beneath import Anchor
    from corral.paths.names import Names

# A new link changes the file's ctime; a directory that gets a sensitive name does not, hence the age.
LONGEST_AGE = 2.0
CLOCK_STEP = 50_000_000  # the kernel stamps times by its tick


class Twins:
    """Device and inode of every such file below the anchors, found when first needed."""

    def __init__(self, anchors: Iterable[Anchor], rules: FileRules) -> None:
        self._anchors = tuple(anchors)
        self._rules = rules
        self._found: dict[tuple[int, int], str] = {}
        self._taken_ns = 0
        self._until = 0.0
        self._lock = allocate_lock()

    def rule_for(self, info: os.stat_result) -> str | None:
        """The rule that a file with several names falls under by one of the others."""
        if info.st_nlink < 2:
            return None
        with self._lock:
            if time.monotonic() > self._until or info.st_ctime_ns > self._taken_ns - CLOCK_STEP:
                self._look()
            return self._found.get((info.st_dev, info.st_ino))

    def _look(self) -> None:
        self._taken_ns = time.time_ns()
        self._until = time.monotonic() + LONGEST_AGE
        self._found = {}
        for which, anchor in enumerate(self._anchors):
            self._look_below(which, anchor)

    def _look_below(self, which: int, anchor: Anchor) -> None:
        ahead: list[tuple[Names, str | None]] = [((), None)]
        while ahead:
            names, above = ahead.pop()
            try:
                fd = anchor.opener(anchor.fd, "/".join(names) or ".", LIST)
            except OSError:
                continue
            try:
                device = os.fstat(fd).st_dev
                with os.scandir(fd) as entries:
                    for entry in entries:
                        rule = above or self._rules.secret_rule(which, names, entry.name)
                        if entry.is_dir(follow_symlinks=False):
                            ahead.append(((*names, entry.name), rule))
                        elif rule is not None:
                            self._found[device, entry.inode()] = rule
            finally:
                os.close(fd)
