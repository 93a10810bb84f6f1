"""The mask layer: a directory of whiteouts that hides names in the home it is laid over.

Kept on the host between runs of one environment, since making it anew costs more than the rest of the mounts; checked
at each run by the stamps of its directories, and made in the jail itself where the host's file system cannot hold
whiteouts (overlayfs, in containers).
"""

from __future__ import annotations

import os
import stat

from corral.jail.site import is_unchanged, stamp_of
from corral.paths.places import Place, pin_directory
from corral.record import Record


class Layer(Record):
    """What hides ``names``, and how its directories looked when they were complete."""

    place: Place
    names: tuple[str, ...]
    stamp: tuple[tuple[str, int, int], ...]

    def is_whole(self) -> bool:
        return is_unchanged(self.stamp)


def make_layer(beside: str, home: str, names: tuple[str, ...]) -> Layer | None:
    """A new layer in a directory of ours; None where whiteouts cannot be made."""
    top = os.path.join(beside, f"masks-{os.urandom(8).hex()}")
    directories = {"": top}
    first: str | None = None
    try:
        os.mkdir(top, 0o700)
        for name in names:
            *parents, leaf = name.split("/")
            for depth in range(1, len(parents) + 1):
                parent = "/".join(parents[:depth])
                if parent not in directories:
                    directories[parent] = os.path.join(top, parent)
                    os.mkdir(directories[parent], 0o700)
            path = os.path.join(directories["/".join(parents)], leaf)
            if first is None:
                os.mknod(path, stat.S_IFCHR, 0)
                first = path
            else:
                os.link(first, path)
        for parent, path in directories.items():
            os.chmod(path, stat.S_IMODE(os.stat(os.path.join(home, parent)).st_mode))
    except OSError:
        return None
    return Layer(pin_directory(top), names, stamp_of(directories.values()))
