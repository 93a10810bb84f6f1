"""What the commands of an environment see, as a view for its files."""

from __future__ import annotations

import os

from corral.errors import PolicyError
from corral.files.view import View, is_below
from corral.paths.beneath import Anchor
from corral.paths.sensitive import ROOT_KEY_MATERIAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.enclosure import Enclosure
    from corral.paths.places import Place

TEMPORARY = ("/tmp", "/var/tmp")
# By mechanism: what a command has its own of. /proc is not shown by any: /proc/self would be the program that Corral
# is part of. Nor is /dev: opening a device can be all that it takes.
PRIVATE = {
    "namespaces": (*TEMPORARY, "/run", "/var/run", "/dev", "/proc"),
    "landlock": ("/dev", "/proc"),
    "none": ("/dev", "/proc"),
}
MODES = ("off", "read-only", "workspace-write")


def check_view(mode: str) -> None:
    if mode not in MODES:
        raise PolicyError(f'files="view" is there in mode {", ".join(MODES)}; mode {mode} has files="roots"')


def view_of(enclosure: Enclosure, temp: Place | None) -> View:
    """Its anchors are closed by the caller."""
    return View(
        readable=(Anchor("/"), *map(_held, _granted(enclosure)), *map(Anchor, _homes(enclosure))),
        scratch=tuple(_scratch(enclosure.choice.backend, temp)),
        private=PRIVATE[enclosure.choice.backend],
    )


def hidden_in_view(enclosure: Enclosure) -> list[str]:
    """What only root can read, and files that are granted below a private place: no anchor can show those."""
    private = [
        place.path
        for place in (*enclosure.writable, *enclosure.read_only)
        if not place.is_directory and any(is_below(place.path, top) for top in TEMPORARY)
        if not any(is_below(place.path, root.path) for root in enclosure.roots)
    ]
    return [*ROOT_KEY_MATERIAL, *(private if enclosure.choice.backend == "namespaces" else ())]


def _granted(enclosure: Enclosure) -> list[Place]:
    """Directories beyond the roots: below a private place only an anchor of their own shows them."""
    return [
        place
        for place in (*enclosure.writable, *enclosure.read_only)
        if place.is_directory and not any(is_below(place.path, root.path) for root in enclosure.roots)
    ]


def _homes(enclosure: Enclosure) -> list[str]:
    """Those below a private place, put back there."""
    return [home for home in enclosure.homes if any(is_below(home, top) for top in TEMPORARY)]


def _scratch(backend: str, temp: Place | None) -> list[Anchor]:
    if backend == "none":
        return [Anchor(path) for path in TEMPORARY if os.path.isdir(path)]
    if temp is None:
        return []
    if backend == "landlock":
        return [_held(temp)]
    shown = []
    for path in TEMPORARY:  # the same directory twice, as inside
        anchor = _held(temp)
        anchor.path = anchor.given = path
        shown.append(anchor)
    return shown


def _held(place: Place) -> Anchor:
    return Anchor(place.path, fd=place.fd)
