"""Site: where a run takes place. Places that were pinned, what of them may be written, and what must be hidden."""

from __future__ import annotations

import os

from corral.errors import PolicyError
from corral.paths.places import Place
from corral.paths.sensitive import KEY_MATERIAL, ROOT_KEY_MATERIAL, existing_backups
from corral.record import Record
from corral.state import homes as account_homes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.jail.ground import Ground


class Home(Record):
    """The home that a command gets of its own, where ``place`` is. ``copied``: the real one under a layer that takes
    what is written (``layers``: that, and its work directory); otherwise an empty one (``layers``: its directory).
    ``staged``: where the stage of a jail has it. ``uid``, ``gid``: who the command is inside. ``owners``: a user
    namespace by which what is ours on disk becomes that user's, where we are root; -1: one of the run's own does it.
    ``over``: files of ours to put over the system's, by path. ``marks``: whose attributes say, in the layer of a copy,
    what was done there: "user" or, where the kernel lets us (``is_initial_root``), "trusted"; then directories can be
    renamed."""

    place: Place
    copied: bool
    layers: tuple[Place, ...]
    staged: str
    uid: int
    gid: int
    owners: int = -1
    over: tuple[tuple[str, Place], ...] = ()
    marks: str = "user"


class Site(Record):
    """``temp`` None: a fresh one for each run. ``resolver``: what /etc/resolv.conf means, if it lies in /run.
    ``inherits_streams``: the command gets our own standard streams, not pipes; ``kept``: and these descriptors.
    ``terminal``: it gets one of its own.
    ``ground``: namespaces that stand ready; ``layers``: mask layers that do, by home. ``home``: a home of its own;
    ``review``: the workspace, copied; ``stage``: where the ground has mounted what runs share, empty if it has not;
    ``is_set``: the ground has the whole scene. ``group``: "alone" if a control group holds the run's memory, "beside"
    if the supervisor counts it as well, empty if only the supervisor does."""

    roots: tuple[Place, ...]
    writable: tuple[Place, ...]
    read_only: tuple[Place, ...]
    hidden: tuple[str, ...]
    homes: tuple[Place, ...]
    cwd: Place
    devices: tuple[Place, ...] = ()
    temp: Place | None = None
    summary: Place | None = None
    resolver: Place | None = None
    inherits_streams: bool = False
    terminal: bool = False
    kept: tuple[int, ...] = ()
    ground: Ground | None = None
    layers: dict[str, Place] = {}  # noqa: RUF012 - a frozen record; nobody writes to it
    home: Home | None = None
    review: Home | None = None
    stage: str = ""
    is_set: bool = False
    group: str = ""


class Masks(Record):
    """Names to hide: by whiteout below a home, and existing places to cover by an over-mount."""

    below_home: dict[str, tuple[str, ...]]
    covered: tuple[str, ...]
    stamp: tuple[tuple[str, int, int], ...]


def is_below(path: str, top: str) -> bool:
    return path == top or top == "/" or path.startswith(top + "/")


def stamp_of(directories: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    seen = []
    for directory in directories:
        try:
            info = os.stat(directory)
            seen.append((directory, info.st_mtime_ns, info.st_ino))
        except OSError:
            seen.append((directory, 0, 0))
    return tuple(seen)


def is_unchanged(stamp: tuple[tuple[str, int, int], ...]) -> bool:
    """Whether `stamp_of` would give the same again."""
    for directory, modified, inode in stamp:
        try:
            info = os.stat(directory)
        except OSError:
            if modified or inode:
                return False
            continue
        if info.st_mtime_ns != modified or info.st_ino != inode:
            return False
    return True


def find_masks(
    homes: Iterable[str], hidden: Iterable[str], unhide: Iterable[str], taken: Iterable[str], *, as_root: bool
) -> Masks:
    """Every name to hide, with symbolic links followed to what they really are: hiding a link and leaving its
    target readable would hide nothing. ``taken``: places that are put over home as they are; what is hidden in
    those cannot be hidden by home's layer, and is covered instead."""
    shown = set(unhide)
    taken = tuple(taken)
    below: dict[str, list[str]] = {home: [] for home in homes}
    covered: list[str] = []
    parents: set[str] = set(below)
    wanted = [os.path.join(home, name) for home in below for name in KEY_MATERIAL if name not in shown]
    wanted += hidden
    if as_root:
        wanted += [path for path in ROOT_KEY_MATERIAL if path not in shown]
    wanted += existing_backups(wanted)
    looked = _Looked(below)
    for path in wanted:
        parents.add(os.path.dirname(path))
        targets = [path]
        if looked.has_link(path):
            targets = [os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))]
            targets.append(os.path.realpath(path))
        for target in dict.fromkeys(targets):
            if target in taken:
                continue  # granted by name
            _refuse_grants_inside(target, taken)
            tops = [top for top in (*below, *taken) if target != top and is_below(target, top)]
            home = max(
                tops, key=len, default=None
            )  # a home may lie in another one, or in a place that is taken
            if home in below and home not in taken:
                below[home].append(looked.first_missing(target, home)[len(home) + 1 :])
            elif os.path.lexists(target):
                covered.append(target)
    names = {home: _outermost(found) for home, found in below.items()}
    return Masks(names, _outermost(covered), stamp_of(sorted(set(map(looked.existing, parents)))))


class _Looked:
    """What is there of the paths to hidden names, each directory looked at once: they have most of them in common."""

    def __init__(self, homes: Iterable[str]) -> None:
        self._tops = {*homes, "/"}
        self._directories: dict[str, bool] = {}
        self._linked: dict[str, bool] = {}

    def is_directory(self, path: str) -> bool:
        found = self._directories.get(path)
        if found is None:
            found = self._directories[path] = os.path.isdir(path)
        return found

    def has_link(self, path: str) -> bool:
        """Whether the path, or a directory on the way to it below its home, is a symbolic link."""
        if path in self._tops:
            return False
        found = self._linked.get(path)
        if found is None:
            above = os.path.dirname(path)
            found = self.has_link(above) or (self.is_directory(above) and os.path.islink(path))
            self._linked[path] = found
        return found

    def first_missing(self, target: str, home: str) -> str:
        """The name to hide: where a directory on the way to it is not there, that one. Nothing is lost by it, no layer
        shows a directory that does not exist, and what appears there during a run is hidden."""
        while (above := os.path.dirname(target)) != home and not self.is_directory(above):
            target = above
        return target

    def existing(self, directory: str) -> str:
        """The directory, or the nearest one above it that is there: what is made below it changes its time."""
        while not self.is_directory(directory):
            directory = os.path.dirname(directory)
        return directory


def _refuse_grants_inside(target: str, taken: tuple[str, ...]) -> None:
    for place in taken:
        if is_below(place, target):
            raise PolicyError(
                f"{place} lies inside {target}, which is hidden; unhide that to grant something in it",
                path=place,
                rule=f"hide {target}",
                grant=f"--unhide {_below_home(target)}",
            )


def _below_home(path: str) -> str:
    """As the list of hidden names spells it."""
    home = next((home for home in account_homes() if is_below(path, home)), "")
    return path[len(home) + 1 :] if home else path


def _outermost(paths: list[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):
        if not kept or not is_below(path, kept[-1]):
            kept.append(path)
    return tuple(kept)


def submounts(top: str) -> list[str]:
    """Mount points strictly below a directory; an overlay over it would lose or refuse them."""
    with open("/proc/self/mountinfo", "rb") as file:
        points = [line.split(b" ")[4] for line in file]
    prefix = os.fsencode(top.rstrip("/") + "/")
    return [os.fsdecode(unescape(p)) for p in points if unescape(p).startswith(prefix)]


def unescape(point: bytes) -> bytes:
    if b"\\" not in point:
        return point
    for code, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        point = point.replace(code, char)
    return point
