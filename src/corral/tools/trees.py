"""Going through a tree for a tool: what is never worth looking at is left out, and time and patience are bounded."""

from __future__ import annotations

import time

from corral.tools.failures import Failure
from corral.tools.limits import TREE_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from corral.files.scanning import Level, Scan
    from corral.tools.call import Call

# Directories that hold copies, caches and what was built. One that is named outright is looked through.
LEFT_OUT = frozenset((".git", "node_modules", "vendor", "__pycache__", ".cache", "dist", "build"))


class Clock:
    """When a call must end: because its time is up, or because somebody wants it to."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._until = time.monotonic() + TREE_SECONDS

    def tick(self) -> None:
        self._call.check_canceled()
        if time.monotonic() > self._until:
            raise self.up()

    def up(self) -> Failure:
        return Failure(
            f"{self._call.tool} took longer than {TREE_SECONDS:g} seconds",
            "timeout",
            "narrow it: a deeper path, an include glob, a simpler pattern",
        )


def levels(scan: Scan, clock: Clock) -> Iterator[tuple[Level, str]]:
    """Every directory, with its path below the place that is looked through (empty for the place itself)."""
    depth = len(scan.top)
    for level in scan.levels():
        clock.tick()
        if not LEFT_OUT.isdisjoint(level.directories):
            level.directories[:] = [name for name in level.directories if name not in LEFT_OUT]
        yield level, "/".join(level.names[depth:])
