"""What the commands of an environment see, as a view for its files."""

from __future__ import annotations

import os

from corral.errors import PolicyError
from corral.files.view import View, is_below
from corral.paths.beneath import Anchor
from corral.paths.sensitive import ROOT_KEY_MATERIAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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


def check_view(backend: str) -> None:
    if backend not in PRIVATE:
        raise PolicyError(f'files="view" is not there with {backend}; take files="roots"')


def view_of(enclosure: Enclosure, temp: Place | None) -> View:
    """Its anchors are closed by the caller."""
    return View(
        readable=tuple(_readable(enclosure)),
        scratch=(*_temporary(enclosure, temp), *_own_home(enclosure)),
        private=PRIVATE[enclosure.choice.backend],
    )


def hidden_in_view(enclosure: Enclosure) -> list[str]:
    """What only root can read, and files that are granted below a private place: no anchor can show those."""
    private = [
        place.path
        for place in _beyond_roots(enclosure)
        if not place.is_directory and any(is_below(place.path, top) for top in TEMPORARY)
    ]
    return [*ROOT_KEY_MATERIAL, *(private if enclosure.choice.backend == "namespaces" else ())]


def _readable(enclosure: Enclosure) -> Iterator[Anchor]:
    """All there is, or what is on the list; and what lies below a private place and was put back there: only an anchor
    of its own shows that."""
    if enclosure.policy.mode == "strict":
        from corral.jail.root import SYSTEM

        yield from (Anchor(path) for path in SYSTEM if os.path.isdir(path))
    else:
        yield Anchor("/")
    yield from (_held(place.path, place.fd) for place in _beyond_roots(enclosure) if place.is_directory)
    for home in enclosure.homes:
        if any(is_below(home, top) for top in TEMPORARY) and enclosure.policy.mode != "strict":
            yield Anchor(home)


def _beyond_roots(enclosure: Enclosure) -> list[Place]:
    return [
        place
        for place in (*enclosure.writable, *enclosure.read_only)
        if not any(is_below(place.path, root.path) for root in enclosure.roots)
    ]


def _temporary(enclosure: Enclosure, temp: Place | None) -> list[Anchor]:
    backend = enclosure.choice.backend
    if backend == "none":
        return [Anchor(path) for path in TEMPORARY if os.path.isdir(path)]
    if backend == "landlock":
        return [] if temp is None else [_held(temp.path, temp.fd)]
    fd = enclosure.stage_places[f"{enclosure.stage_top}/tmp"] if enclosure.jail is not None else None
    if temp is not None:
        fd = temp.fd
    return (
        [] if fd is None else [_held(path, fd) for path in TEMPORARY]
    )  # the same directory twice, as inside


def _own_home(enclosure: Enclosure) -> list[Anchor]:
    """Where the mode gives the command one: a copy of the real one, or one of the jail's own."""
    home = enclosure.home
    if home is None:
        return []
    fd = enclosure.stage_places[home.staged] if home.copied else home.layers[0].fd
    return [_held(home.place.path, fd)]


def _held(path: str, fd: int) -> Anchor:
    """Known by the path that the jail has it at, wherever it lies."""
    anchor = Anchor(path, fd=fd)
    anchor.path = anchor.given = path
    return anchor
