"""The private temp directory of an environment: on the host, 0700, gone when the environment is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

from corral.errors import PolicyError
from corral.files.removing import remove_tree
from corral.jail.site import is_below
from corral.paths.places import Place, pin_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def make_temp(writable: Iterable[Place] = ()) -> tuple[Place, int]:
    """A new directory for the jail's /tmp, and the descriptor whose lock says that it is in use. What lies beside it,
    in the directory made for this environment, is ours alone: it is never made where a command may write."""
    import tempfile  # not at the top: 12 ms that an environment without commands need not pay

    base = _base(tuple(place.path for place in writable))
    parent = os.path.join(base, f"corral-{os.getuid()}")
    if _is_ours(parent):
        _sweep(parent)
        path = tempfile.mkdtemp(dir=parent)
    else:  # somebody else was first with that name; nobody can foretell this one
        path = tempfile.mkdtemp(prefix=f"corral-{os.getuid()}-", dir=base)
    lock = _lock(path)
    os.mkdir(os.path.join(path, "tmp"), 0o700)
    return pin_directory(os.path.join(path, "tmp")), lock


def _is_ours(parent: str) -> bool:
    """A directory that only we can write, made if it is not there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(parent, 0o700)
    info = os.lstat(parent)
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o077


def _base(writable: tuple[str, ...]) -> str:
    import tempfile

    for base in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        real = os.path.realpath(base)
        if os.access(real, os.W_OK) and not any(is_below(real, place) for place in writable):
            return real
    raise PolicyError("every temp directory lies in a writable place; set TMPDIR to one that does not")


def _lock(path: str) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _sweep(parent: str) -> None:
    """Directories of environments that were killed before they could clean up."""
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        with contextlib.suppress(OSError):
            fd = _lock(path)
            try:
                # One that was just made and is not locked yet has nothing in it; leave it to its maker.
                if os.listdir(fd):
                    remove_tree(path)
            finally:
                os.close(fd)


def remove_temp(place: Place, lock: int) -> None:
    remove_tree(os.path.dirname(place.path))
    os.close(lock)
    place.close()
