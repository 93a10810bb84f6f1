"""What must stay where it is. A mount point cannot be renamed, but what lies above it can: whoever moves that away may
put something else in its place, and finds what was covered beside it at the next run."""

from __future__ import annotations

import os

from corral.jail.site import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from corral.jail.site import Masks, Site


def directories_to_hold(site: Site, masks: Masks) -> list[str]:
    """Every directory between a writable place and something in it that is read-only or hidden. Mounted on itself it
    is as before, but for renames into it and out of it."""
    # A workspace under review is a copy: what is moved in it is seen by whoever reviews it.
    reviewed = site.review.place.path if site.review is not None else ""
    tops = [place.path for place in site.writable if place.is_directory and place.path != reviewed]
    closed = [place.path for place in site.read_only]
    hidden = (f"{home}/{name}" for home, names in masks.below_home.items() for name in names)
    found: set[str] = set()
    for path in (*closed, *masks.covered, *hidden):
        top = next((top for top in tops if path != top and is_below(path, top)), None)
        if top is not None and os.path.lexists(path):
            found.update(_between(path, top))
    return sorted(path for path in found if not any(is_below(path, place) for place in closed))


def _between(path: str, top: str) -> Iterator[str]:
    path = os.path.dirname(path)
    while path != top:
        if os.path.isdir(path) and not os.path.islink(path):
            yield path
        path = os.path.dirname(path)
