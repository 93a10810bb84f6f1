"""Mount points on the host: what is put back below a directory that covers it needs a name to stand on there."""

from __future__ import annotations

import os
import stat

from corral.errors import NotEnforceable
from corral.jail.site import is_below
from corral.paths.places import Place, pin_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def make_mount_points(covering: Place, top: str, places: Iterable[Place]) -> None:
    """In ``covering``, which is to lie over ``top``, for each of the places below that. No link is followed."""
    for place in places:
        if not is_below(place.path, top) or place.path == top:
            continue
        below = place.path[len(top) + 1 :]
        made = pin_beneath(covering, below if place.is_directory else os.path.dirname(below), create=True)
        if made is None:
            raise NotEnforceable(
                f"{covering.path}/{below} cannot be made; make it yourself, or leave the grant out",
                path=place.path,
            )
        if not place.is_directory:
            # Made, never opened: a FIFO that an earlier run left there would keep us waiting.
            try:  # noqa: SIM105 - contextlib is not on the path of a run
                os.mknod(os.path.basename(below), stat.S_IFREG | 0o600, dir_fd=made.fd)
            except FileExistsError:
                pass
        made.close()
