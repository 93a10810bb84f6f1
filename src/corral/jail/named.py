"""Jails by name: what casual, bare and strict keep between runs, one directory a name.

changes/  work/   what was written to the copied home (the upper layer of an overlay, and its work directory)
home/             the private home of bare and strict
sealed/           what the changed files were before, for whoever looks at the changes
review/           the same three for a workspace under review
stage/            empty; where a running jail mounts what its runs share, seen by nobody else
about             the mode it was made with, and for which directory
masked            hidden names under which it has nothing of the real home
lock, holders/    who runs in it now
"""

from __future__ import annotations

import os

from corral.digest import digest
from corral.errors import NotEnforceable, PolicyError
from corral.jail.site import is_below, unescape
from corral.policy import check_jail_name
from corral.record import Record
from corral.state import made_state_directory, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORIES = ("changes", "work", "home", "sealed", "holders")
REVIEW = ("review/changes", "review/work", "review/sealed")
STAGED = ("stage/home", "stage/tmp", "stage/masks", "stage/review")

# File systems that cannot take what an overlay writes, by the name the kernel gives them.
NOT_FOR_LAYERS = (
    *("overlay", "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs"),
    *("ecryptfs", "ramfs", "vfat", "exfat", "ntfs3"),
)


class NamedJail(Record):
    """Its directory, canonical; nothing in it is shown inside."""

    name: str
    path: str

    def part(self, name: str) -> str:
        return os.path.join(self.path, name)


def default_name(directory: str) -> str:
    """After the project, and told apart from another of the same name: one project's agent plants nothing for
    another's."""
    real = os.path.realpath(directory)
    word = "".join(c if c.isalnum() or c in "._" else "-" for c in os.path.basename(real)).strip(".-_")
    return f"{word[:40] or 'root'}-{digest(os.fsencode(real))[:8]}"


def storage_directory(storage: str | None) -> str:
    return os.path.abspath(storage) if storage else os.path.join(state_directory(), "jails")


def find(name: str, storage: str | None = None) -> NamedJail | None:
    check_jail_name(name)
    path = os.path.join(storage_directory(storage), name)
    return NamedJail(name, os.path.realpath(path)) if os.path.isdir(path) else None


def every(storage: str | None = None) -> Iterator[NamedJail]:
    top = storage_directory(storage)
    if not os.path.isdir(top):
        return
    for name in sorted(os.listdir(top)):
        if os.path.isdir(os.path.join(top, name)) and not name.startswith("."):
            yield NamedJail(name, os.path.realpath(os.path.join(top, name)))


def make(name: str, storage: str | None = None) -> NamedJail:
    """The jail of that name, its directories made where they are missing. Harmless from many processes at once."""
    check_jail_name(name)
    if storage is None and made_state_directory() is None:
        raise NotEnforceable(
            f"{state_directory()} cannot be written, and a home is kept there; use --storage DIR"
        )
    path = os.path.join(storage_directory(storage), name)
    try:
        for part in ("", *DIRECTORIES, *REVIEW, *STAGED):
            os.makedirs(os.path.join(path, part), 0o700, exist_ok=True)
    except OSError as error:
        raise PolicyError(
            f"{path}: {error.strerror}; name another place with --storage DIR", path=path
        ) from None
    return NamedJail(name, os.path.realpath(path))


def recorded(jail: NamedJail) -> dict[str, str] | None:
    """Its mode and directory; None if it was never told, or not in a way we understand."""
    try:
        with open(jail.part("about"), "rb") as file:
            mode, _, directory = os.fsdecode(file.read()).partition("\n")
    except OSError:
        return None
    return {"mode": mode, "directory": directory} if directory else None


def record(jail: NamedJail, mode: str, directory: str) -> None:
    """At its first run: later ones take the mode it was made with."""
    if recorded(jail) is not None:
        return
    temporary = jail.part(f".about-{os.urandom(6).hex()}")
    with open(temporary, "wb") as file:
        file.write(os.fsencode(f"{mode}\n{directory}"))
    os.rename(temporary, jail.part("about"))


# ---- whether a file system can hold what an overlay writes ----


def file_system(path: str) -> tuple[str, str]:
    """Type and mount point of the file system a path lies on."""
    best, kind = "/", "unknown"
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            before, _, after = line.partition(b" - ")
            point = os.fsdecode(unescape(before.split(b" ")[4]))
            if is_below(path, point) and len(point) >= len(best):
                best, kind = point, after.split(b" ")[0].decode("ascii", "replace")
    return kind, best


def holds_layers(path: str) -> bool:
    kind, _ = file_system(path)
    return kind not in NOT_FOR_LAYERS and not kind.startswith("fuse")


def check_storage(storage: str | None, otherwise: str) -> None:
    """Refuse, before anything is made or mounted, a place that the kernel would refuse without saying why."""
    top = os.path.realpath(storage_directory(storage))
    if not holds_layers(top):
        kind, point = file_system(top)
        raise _unfit(top, f"{point} is {kind}, which cannot hold what is changed in a copy", otherwise)


def check_layers(jail: NamedJail, part: str, otherwise: str) -> None:
    upper = jail.part(part)
    trial = f"user.corral.{os.getpid()}"  # others may try it at the same time
    try:
        os.setxattr(upper, trial, b"1")
        os.removexattr(upper, trial)
    except OSError as error:
        kind, point = file_system(upper)
        why = f"{point} ({kind}) takes no extended attributes: {error.strerror}"
        raise _unfit(upper, why, otherwise) from None


def _unfit(path: str, why: str, otherwise: str) -> NotEnforceable:
    return NotEnforceable(
        f"{path}: {why}; name a directory on a local disk with --storage DIR (config: storage), or {otherwise}",
        path=path,
    )
