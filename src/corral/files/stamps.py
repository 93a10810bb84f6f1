"""Stamps: what was read, and has it changed since?

Identity, size and times tell; where only the time of the last change of any kind differs (a link was made, a mode
set), the digest decides. A file that is new, or gone, was not changed under anybody's eyes and passes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from _thread import allocate_lock

from corral.errors import StaleFile
from corral.files import stampfile
from corral.files.attributes import LOOK
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.paths.parents import Parent

KEPT_SECONDS = stampfile.KEPT_SECONDS
KEPT_AT_MOST = stampfile.KEPT_AT_MOST
FRESH_SECONDS = 3600  # a stamp that is not older is not written again
CHUNK = 1 << 20

Digest = hashlib.sha256


def digest_of(content: bytes) -> str:
    return Digest(content).hexdigest()


class Stamp(Record):
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    digest: str | None
    seen: float

    @classmethod
    def of(cls, info: os.stat_result, digest: str | None) -> Stamp:
        times = info.st_mtime_ns, info.st_ctime_ns
        return cls(info.st_dev, info.st_ino, info.st_size, *times, digest, time.time())

    def says_the_same(self, before: Stamp) -> bool:
        return self._values()[:-1] == before._values()[:-1] and self.seen - before.seen < FRESH_SECONDS


class Stamps:
    """Of one engine. ``store``: a file that keeps them for the next process, 24 hours at most."""

    def __init__(self, store: str | None = None) -> None:
        self._store = stampfile.Store(store) if store else None
        self._lock = allocate_lock()
        self._known: dict[str, Stamp] = {}
        if store:
            self._known = {path: Stamp(*fields) for path, fields in stampfile.load(store).items()}

    @classmethod
    def kept_for(cls, workspace: str, client: str) -> Stamps:
        """Those of a workspace and a client, on disk below the state directory."""
        from corral.state import made_state_directory

        state = made_state_directory()
        if state is None:
            return cls()
        directory = os.path.join(state, "stamps")
        os.makedirs(directory, 0o700, exist_ok=True)
        stampfile.sweep(directory)
        name = digest_of(f"{os.path.realpath(workspace)}\0{client}".encode(errors="surrogateescape"))
        return cls(os.path.join(directory, f"{name}.jsonl"))

    def remember(self, path: str, info: os.stat_result, digest: str | None = None) -> None:
        """That the file at a path was read, or written, and what it was then."""
        stamp = Stamp.of(info, digest)
        with self._lock:
            before = self._known.pop(path, None)
            self._known[path] = stamp
            while len(self._known) > KEPT_AT_MOST:
                del self._known[next(iter(self._known))]
            if self._store is not None and (before is None or not stamp.says_the_same(before)):
                self._write([(path, list(stamp._values()))])

    def forget(self, path: str) -> None:
        """It, and all below it: we took it away ourselves."""
        with self._lock:
            gone = [name for name in self._known if name == path or name.startswith(path + "/")]
            for name in gone:
                del self._known[name]
            self._write([(name, None) for name in gone])

    def _write(self, rows: list[stampfile.Row]) -> None:
        """For the next process. A full disk must not keep anybody from reading a file."""
        if self._store is not None and rows:
            with contextlib.suppress(OSError):
                self._store.add(rows)

    def close(self) -> None:
        """What is remembered stays; only its file is let go, until something is added to it."""
        with self._lock:
            if self._store is not None:
                self._store.close()

    def guard(self, path: str, parent: Parent) -> Callable[[], None]:
        """To be called before something else is put there."""
        return lambda: self.refuse_if_stale(path, parent)

    def refuse_if_stale(self, path: str, parent: Parent) -> None:
        """StaleFile if what the parent names was read, is there, and is not the same any more."""
        stamp = self._known.get(path)
        if stamp is None:
            return
        try:
            info = os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        changed = _what_changed(stamp, info)
        if changed and not (changed == "ctime" and _has_digest(parent, stamp)):
            raise _stale(changed, parent.name, parent.path)

    def compare(self, path: str, given: str, info: os.stat_result, content: bytes) -> None:
        """What was read now with what was read before, StaleFile if it is not the same; then, and if it was never
        read, it is remembered."""
        stamp = self._known.get(path)
        changed = _what_changed(stamp, info) if stamp is not None else ""
        if stamp is None or changed == "ctime":
            digest = digest_of(content)
            if stamp is None or stamp.digest == digest:
                self.remember(path, info, digest)
                return
        if changed:
            raise _stale(changed, path.rpartition("/")[2], given)


def _stale(changed: str, name: str, given: str) -> StaleFile:
    return StaleFile(
        f"file modified since last read ({changed} changed). Re-read before writing: {name}",
        path=given,
        rule="changed since read",
        grant="read it again",
    )


def _what_changed(stamp: Stamp, info: os.stat_result) -> str:
    if (stamp.device, stamp.inode) != (info.st_dev, info.st_ino):
        return "file"
    if stamp.mtime_ns != info.st_mtime_ns:
        return "mtime"
    if stamp.size != info.st_size:
        return "size"
    return "ctime" if stamp.ctime_ns != info.st_ctime_ns else ""


def _has_digest(parent: Parent, stamp: Stamp) -> bool:
    if stamp.digest is None:
        return False
    try:
        fd = os.open(parent.name, LOOK, dir_fd=parent.fd)
    except OSError:
        return False
    sha256 = Digest()
    try:
        while piece := os.read(fd, CHUNK):
            sha256.update(piece)
    finally:
        os.close(fd)
    return sha256.hexdigest() == stamp.digest
