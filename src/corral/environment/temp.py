"""The private temp directory of an environment: on the host, 0700, gone when the environment is."""

from __future__ import annotations

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
    path = _made_somewhere(tuple(place.path for place in writable))
    lock = _lock(path)
    os.mkdir(os.path.join(path, "tmp"), 0o700)
    return pin_directory(os.path.join(path, "tmp")), lock


# Neither tempfile nor contextlib: importing them takes longer than all that is done here, on the way of `corral run`.


def _new_directory(beginning: str) -> str:
    while True:
        path = f"{beginning}{os.urandom(8).hex()}"
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
        return path


def _is_ours(parent: str) -> bool:
    """A directory that only we can write, made if it is not there."""
    try:
        os.mkdir(parent, 0o700)
    except FileExistsError:
        info = os.lstat(parent)
        return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o077
    return True


def _made_somewhere(writable: tuple[str, ...]) -> str:
    """Tried, not asked: a jail around us refuses what the permissions allow."""
    told = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    why = "every temp directory lies in a writable place; set TMPDIR to one that does not"
    for base in (*filter(None, told), "/tmp", "/var/tmp", "."):
        real = os.path.realpath(base)
        if any(is_below(real, place) for place in writable):
            continue
        try:
            return _made_in(real)
        except OSError as error:
            why = f"{real} cannot be written ({error.strerror}); set TMPDIR to a directory that can"
    raise PolicyError(why)


def _made_in(base: str) -> str:
    parent = os.path.join(base, f"corral-{os.getuid()}")
    if _is_ours(parent):
        _sweep(parent)
        return _new_directory(f"{parent}/")
    # Somebody else was first with that name; nobody can foretell this one.
    return _new_directory(f"{parent}-")


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
        try:
            fd = _lock(path)
            try:
                # One that was just made and is not locked yet has nothing in it; leave it to its maker.
                if os.listdir(fd):
                    remove_tree(path)
            finally:
                os.close(fd)
        except OSError:
            continue  # it is in use, or somebody else sweeps it


def remove_temp(place: Place, lock: int) -> None:
    remove_tree(os.path.dirname(place.path))
    os.close(lock)
    place.close()
