"""Stamps on disk: one line of JSON each, added at the end. The last line about a path counts; one without a stamp says
that the path was taken away. Now and then the file is written anew, without what is old."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    # What a stamp is made of; None where the path was taken away.
    Fields = list[Any]
    Row = tuple[str, Fields | None]

KEPT_SECONDS = 24 * 3600
KEPT_AT_MOST = 4096
STORES_AT_MOST = 256
ANEW_BYTES = 4 << 20
APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
ATTEMPTS = 100


def load(store: str) -> dict[str, Fields]:
    """What is there and not too old, the oldest first. What is none of ours, or broken, counts for nothing."""
    try:
        with open(store, encoding="utf-8", errors="surrogatepass") as file:
            lines = file.read().split("\n")
    except (OSError, ValueError):
        return {}
    known: dict[str, Fields] = {}
    oldest = time.time() - KEPT_SECONDS
    for line in lines:
        try:
            path, *fields = json.loads(line) if line else ("",)
            known.pop(path, None)
            if len(fields) == 7 and fields[-1] > oldest:
                known[path] = fields
        except (ValueError, TypeError):
            continue
    for path in list(known)[:-KEPT_AT_MOST]:
        del known[path]
    return known


class Store:
    """A file of stamps that is added to; it stays open in between."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._owner = 0

    def close(self) -> None:
        """Harmless twice; what is added afterwards opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def add(self, rows: Iterable[Row]) -> None:
        """At the end. Whoever writes the file anew meanwhile is waited for, and then it is another file."""
        text = _text(rows)
        if self._owner != os.getpid():  # after a fork its lock would be one for two processes
            self.close()
            self._owner = os.getpid()
        for _ in range(ATTEMPTS):
            if self._fd < 0:
                self._fd = os.open(self.path, APPEND, 0o600)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self._fd, fcntl.LOCK_EX)
            try:
                info = os.fstat(self._fd)
                if not info.st_nlink:
                    self.close()
                    continue
                os.write(self._fd, text)
                if info.st_size + len(text) > ANEW_BYTES:
                    _write_anew(self.path)
                return
            except OSError:
                self.close()  # also what NFS says of a file that is gone; the next line opens it anew
                raise
            finally:
                if self._fd >= 0:
                    with contextlib.suppress(OSError):
                        fcntl.flock(self._fd, fcntl.LOCK_UN)


def _write_anew(store: str) -> None:
    new = f"{store}.{os.getpid()}"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file:
        file.write(_text(load(store).items()))
    os.replace(new, store)


def _text(rows: Iterable[Row]) -> bytes:
    return b"".join(json.dumps([path, *(fields or ())]).encode("ascii") + b"\n" for path, fields in rows)


def sweep(directory: str) -> None:
    """Remove what nobody has added to for so long that nothing in it counts any more, and what is too many."""
    oldest = time.time() - KEPT_SECONDS
    found = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                found.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
    for number, (added, path) in enumerate(sorted(found, reverse=True)):
        if added < oldest or number >= STORES_AT_MOST:
            with contextlib.suppress(OSError):
                os.unlink(path)
