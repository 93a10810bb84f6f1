"""Stamps: what was read, and has it changed since?

Identity, size and times tell; where only the time of the last change of any kind differs (a link was made, a mode
set), the digest decides. A file that is new, or gone, was not changed under anybody's eyes and passes.
"""

from __future__ import annotations

import json
import os
import time
from _thread import allocate_lock

from corral.errors import StaleFile
from corral.files.attributes import LOOK
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.paths.parents import Parent

KEPT_SECONDS = 24 * 3600
KEPT_AT_MOST = 4096
CHUNK = 1 << 20


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


class Stamps:
    """Of one engine. ``store``: a file that keeps them for the next process, 24 hours at most."""

    def __init__(self, store: str | None = None) -> None:
        self._store = store
        self._lock = allocate_lock()
        self._known: dict[str, Stamp] = _load(store) if store else {}

    @classmethod
    def kept_for(cls, workspace: str, client: str) -> Stamps:
        """Those of a workspace and a client, on disk below the state directory."""
        import hashlib

        from corral.state import made_state_directory

        state = made_state_directory()
        if state is None:
            return cls()
        directory = os.path.join(state, "stamps")
        os.makedirs(directory, 0o700, exist_ok=True)
        name = hashlib.sha256(f"{os.path.realpath(workspace)}\0{client}".encode(errors="surrogateescape"))
        return cls(os.path.join(directory, f"{name.hexdigest()}.json"))

    def remember(self, path: str, info: os.stat_result, content: bytes | None = None) -> None:
        stamp = Stamp.of(info, None if content is None else _digest(content))
        with self._lock:
            self._known.pop(path, None)
            self._known[path] = stamp
            while len(self._known) > KEPT_AT_MOST:
                del self._known[next(iter(self._known))]
            if self._store:
                _save(
                    self._store, {**_load(self._store), **self._known}
                )  # another process may have read, too

    def forget(self, path: str) -> None:
        with self._lock:
            self._known.pop(path, None)

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
        if not changed or (changed == "ctime" and _has_digest(parent, stamp)):
            return
        raise StaleFile(
            f"file modified since last read ({changed} changed). Re-read before writing: {parent.name}",
            path=parent.path,
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
    import hashlib

    try:
        fd = os.open(parent.name, LOOK, dir_fd=parent.fd)
    except OSError:
        return False
    sha256 = hashlib.sha256()
    try:
        while piece := os.read(fd, CHUNK):
            sha256.update(piece)
    finally:
        os.close(fd)
    return sha256.hexdigest() == stamp.digest


def _digest(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


# ---- on disk ----


def _load(store: str) -> dict[str, Stamp]:
    """What is there and not too old. A file that is none of ours, or broken, is as good as empty."""
    try:
        with open(store, encoding="utf-8", errors="surrogatepass") as file:
            rows = json.load(file)
        stamps = {str(path): Stamp(*fields) for path, fields in rows.items()}
        oldest = time.time() - KEPT_SECONDS
        return {path: stamp for path, stamp in stamps.items() if stamp.seen > oldest}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _save(store: str, known: dict[str, Stamp]) -> None:
    rows = {path: [getattr(stamp, name) for name in stamp._fields] for path, stamp in known.items()}
    new = f"{store}.{os.getpid()}"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8", errors="surrogatepass") as file:
        json.dump(rows, file)
    os.replace(new, store)
