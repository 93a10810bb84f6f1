"""Places: a path that was opened once and is known by its descriptor from then on.

While a place is held its inode cannot be reused, so device and inode number name it for good: whatever stands at
the path later is compared with them and refused if it is something else.
"""

from __future__ import annotations

import os
import stat

from corral.errors import PathEscape, PolicyError
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_LINKS = 40  # as the kernel


class Place(Record):
    """An open file or directory: canonical path, descriptor (O_PATH), and its identity."""

    path: str
    fd: int
    kind: int
    device: int
    inode: int

    @property
    def is_directory(self) -> bool:
        return self.kind == stat.S_IFDIR

    def close(self) -> None:
        os.close(self.fd)


def kernel_device(device: int) -> int:
    """The device number as the launcher compares it."""
    return os.major(device) << 32 | os.minor(device)


def pin(path: str, what: str = "path") -> Place:
    """Open ``path``, links followed, and hold it. A place that cannot be opened is a PolicyError naming it."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise PolicyError(f"{what} {path}: {error.strerror}", path=path) from None
    return _place(fd)


def _place(fd: int) -> Place:
    info = os.fstat(fd)
    canonical = os.readlink(f"/proc/self/fd/{fd}")
    return Place(canonical, fd, stat.S_IFMT(info.st_mode), kernel_device(info.st_dev), info.st_ino)


def pin_directory(path: str, what: str = "directory") -> Place:
    place = pin(path, what)
    if not place.is_directory:
        place.close()
        raise PolicyError(f"{what} {path}: not a directory", path=path)
    return place


def links_on_the_way(path: str) -> Iterator[str]:
    """Every symbolic link that is followed to get to where an absolute path leads."""
    ahead, here, left = path.split("/")[::-1], "", MOST_LINKS
    while ahead and left:
        name = ahead.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here).rstrip("/")
            continue
        try:
            target = os.readlink(f"{here}/{name}")
        except OSError:
            here = f"{here}/{name}"
            continue
        yield f"{here}/{name}"
        left -= 1
        here = "" if target.startswith("/") else here
        ahead += target.split("/")[::-1]


def pin_beneath(root: Place, relative: str, *, create: bool) -> Place | None:
    """Hold what lies at ``relative`` below a root, following no link on the way. Missing directories are made
    (0755) if asked for; otherwise a missing path gives None."""
    fd = os.open(".", os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY, dir_fd=root.fd)
    try:
        for name in [n for n in relative.split("/") if n not in ("", ".")]:
            following = _step(fd, name, create)
            if following is None:
                return None
            os.close(fd)
            fd = following
        place = _place(fd)
        fd = -1
        if stat.S_ISLNK(place.kind):
            place.close()
            raise PathEscape(f"{root.path}/{relative} is a symbolic link", path=relative, rule="writable")
        return place
    finally:
        if fd >= 0:
            os.close(fd)


def _step(fd: int, name: str, create: bool) -> int | None:
    flags = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
    for attempt in ("find", "make"):
        try:
            found = os.open(name, flags, dir_fd=fd)
        except FileNotFoundError:
            if not create or attempt == "make":
                return None
            _make_directory(fd, name)
            continue
        except NotADirectoryError:
            raise PathEscape(f"{name}: its parent is a link or a file", path=name, rule="writable") from None
        return found
    return None


def _make_directory(fd: int, name: str) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=fd)
    except FileExistsError:
        return  # somebody else was first; what it is shows when it is opened
