"""Layers: the real directory, the overlay's upper one, and the directory of ours that remembers what was before."""

from __future__ import annotations

import errno
import fcntl
import os

from corral.errors import Refused
from corral.record import Record

LOCK, BELONGS = "lock", "layers"


class Layers(Record):
    """``attributes``: where the overlay keeps its marks: "user" (mounted with userxattr) or "trusted" (real root)."""

    lower: str
    upper: str
    sealed: str
    attributes: str = "user"

    def in_sealed(self, *names: str) -> str:
        return os.path.join(self.sealed, *names)


def jail_layers(state: str, jail: str, lower: str, attributes: str = "user") -> Layers:
    """Those of a casual jail's home."""
    return _layers(os.path.join(state, "jails", jail), lower, attributes)


def review_layers(state: str, jail: str, lower: str, attributes: str = "user") -> Layers:
    """Those of a workspace that is reviewed before it is changed."""
    return _layers(os.path.join(state, "jails", jail, "review"), lower, attributes)


def _layers(base: str, lower: str, attributes: str) -> Layers:
    return Layers(lower, os.path.join(base, "changes"), os.path.join(base, "sealed"), attributes)


def remember(layers: Layers) -> None:
    """Which directory these layers belong to. Changes to one directory are no changes to another."""
    told = remembered(os.path.dirname(layers.sealed))
    if told is not None and told.lower != layers.lower and has_entries(layers.upper):
        raise Refused(
            f"this jail still holds changes to {told.lower}; apply or discard them first",
            path=told.lower,
            rule="changes",
            grant="corral changes discard",
        )
    if told is None or (told.lower, told.attributes) != (layers.lower, layers.attributes):
        lines = f"{layers.attributes}\n{os.fsencode(layers.lower).hex()}"
        write_whole(layers.in_sealed(BELONGS), lines.encode())


def remembered(base: str) -> Layers | None:
    """The layers that are kept in a directory, if anything ever ran in them."""
    try:
        with open(os.path.join(base, "sealed", BELONGS)) as file:
            attributes, lower = file.read().split("\n")
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _layers(base, os.fsdecode(bytes.fromhex(lower)), attributes)


def has_entries(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return any(True for _ in entries)
    except FileNotFoundError:
        return False


def open_lock(layers: Layers) -> int:
    os.makedirs(layers.sealed, 0o700, exist_ok=True)
    return os.open(layers.in_sealed(LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def lock_alone(fd: int) -> bool:
    """Whether nobody else holds it; then we do."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            raise
        return False
    return True


def write_whole(path: str, content: bytes) -> None:
    """A small file of our own, whole or as before, and on the disk."""
    new = f"{path}.new"
    with open(new, "wb", opener=_private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
