"""View: what the jail of the commands shows beyond the roots, for files too.

Its anchors are known by the path at which the jail shows them: the private /tmp of the jail is an anchor whose path
is /tmp, wherever it lies on the host.
"""

from __future__ import annotations

from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.paths.beneath import Anchor


class View(Record):
    """``readable``: places that can be read, ``/`` most of the time. ``scratch``: private places that can be written.
    ``private``: what a jail has its own of and has no anchor here, so that it is not shown."""

    readable: tuple[Anchor, ...] = ()
    scratch: tuple[Anchor, ...] = ()
    private: tuple[str, ...] = ("/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc")


def is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def longest(path: str, anchors: Iterable[Anchor]) -> Anchor | None:
    """The anchor whose path is the longest that this one begins with."""
    fitting = [anchor for anchor in anchors if is_below(path, anchor.path)]
    return max(fitting, key=lambda anchor: len(anchor.path), default=None)
