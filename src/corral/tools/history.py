"""History: what files were before a tool changed them, so that a change can be taken back.

One file an entry, in the state directory: a line of JSON, and the content as it was (compressed where that helps). The
name has the time, the id and the size, so that listing and making room open nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from corral.digest import digest
from corral.files.atomic import write_all
from corral.record import Record
from corral.tools.failures import Failure
from corral.tools.limits import KB, MB, UNDO_BYTES, UNDO_ENTRIES, UNDO_FILE_BYTES

PACKED_FROM = 16 * KB  # below that it is not worth the time
SPARE_ENTRIES = 10  # that many more may lie there, unseen
SPARE_BYTES = 1 * MB
SPENT_BYTES = SPARE_BYTES // SPARE_ENTRIES
OVER = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
HELD = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class Entry(Record):
    """``created``: nothing was there, and taking it back removes the file. ``path``: as the tool was given it.
    ``place``: where that was, an absolute path. ``content`` is None too where it was not asked for."""

    id: str
    time: float
    tool: str
    path: str
    place: str
    size: int
    created: bool
    content: bytes | None


class Locked:
    """A file in the directory, held open from lock to lock by one thread at a time; None: there is no directory."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._fd = -1
        self._owner = 0

    def __enter__(self) -> None:
        if self._owner != os.getpid():  # after a fork it would be one lock for two processes
            self.close()
            self._owner = os.getpid()
        while self._directory is not None:
            if self._fd < 0:
                self._fd = self._opened(self._directory)
            if self._fd < 0:
                return
            with contextlib.suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):  # what NFS says of a file that is gone
                if os.fstat(self._fd).st_nlink:
                    return
            self.close()  # somebody removed it: others lock another one

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @staticmethod
    def _opened(directory: str) -> int:
        path = os.path.join(directory, "lock")
        for attempt in range(2):
            try:
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                if attempt == 0:
                    with contextlib.suppress(OSError):
                        os.makedirs(directory, 0o700, exist_ok=True)
            except OSError:
                break
        return -1


class History:
    """Of one workspace. ``directory`` None: there is no place to keep it, and every snapshot says so."""

    def __init__(self, directory: str | None, workspace: str) -> None:
        self._directory = directory
        self._workspace = workspace
        self._spare = 0, 0  # so many entries and bytes may be added before making room is due
        self._spent: list[str] = []  # names of what has no room any more, to be written over
        # Descriptor and path of those that are not on the disk yet, by id.
        self._unsettled: dict[str, tuple[int, str]] = {}
        self._lock: Locked | None = None

    def locked(self) -> Locked:
        """Meanwhile no other process changes files of this workspace through the tools. (Where the state directory
        cannot be written, or locked, there is none of ours to wait for.)"""
        if self._lock is None:
            self._lock = Locked(self._directory)
        return self._lock

    def close(self) -> None:
        """Harmless twice; what is asked of it afterwards opens anew what it needs."""
        if self._lock is not None:
            self._lock.close()

    # ---- adding ----

    def keep(self, tool: str, path: str, place: str, content: bytes | None) -> dict[str, str]:
        """Before a change. What goes into the response: the id, or why nothing is kept. It never fails."""
        size = 0 if content is None else len(content)
        if self._directory is None:
            return {"skipped": "there is no state directory that can be written"}
        if size > UNDO_FILE_BYTES:
            return {"skipped": f"more than {UNDO_FILE_BYTES // MB} MB"}
        try:
            return {"id": self._add(self._directory, tool, path, place, content)}
        except OSError as error:
            return {"skipped": f"{error.strerror}"}

    def settle(self, kept: dict[str, str]) -> None:
        """Before the change is seen: what was kept is on the disk, or ``kept`` says that it is not. Harmless twice."""
        if kept.get("id") not in self._unsettled:
            return
        fd, path = self._unsettled.pop(kept["id"])
        try:
            os.fsync(fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(path)
            del kept["id"]
            kept["skipped"] = f"{error.strerror}"
        finally:
            os.close(fd)

    def drop(self, kept: dict[str, str]) -> None:
        """The change was not made after all."""
        fd, _ = self._unsettled.pop(kept.get("id", ""), (-1, ""))
        if fd >= 0:
            os.close(fd)
        for name in self._newest() if "id" in kept else ():
            if name.split("-")[1] == kept["id"]:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._directory or "", name))

    def _add(self, directory: str, tool: str, path: str, place: str, content: bytes | None) -> str:
        import json

        now, name_id = time.time_ns(), os.urandom(6).hex()
        header: dict[str, str | int] = {
            "tool": tool,
            "path": path,
            "place": place,
            "workspace": self._workspace,
        }
        packed = b""
        if content is not None:
            header |= {"digest": digest(content), "size": len(content)}
            packed = content
            if len(content) >= PACKED_FROM:
                packed = _packed(content)
                header["packed"] = "zlib"
        record = json.dumps(header).encode() + b"\n" + packed
        name = f"{now:020d}-{name_id}-{len(record)}"
        self._make_room(directory, len(record))
        # No temp file and no rename: what was not written to its end is found out by its digest.
        place = os.path.join(directory, name)
        fd, size = self._opened(directory, place)
        try:
            write_all(fd, record)
            if size > len(record):
                os.ftruncate(fd, len(record))
            # On its way to the disk, while the change is prepared; `settle` waits for it.
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        except BaseException:
            os.close(fd)
            os.unlink(place)
            raise
        self._unsettled[name_id] = (fd, place)
        return name_id

    def _opened(self, directory: str, place: str) -> tuple[int, int]:
        """A new file, or one that has no room any more, under a new name: to remove one and make another costs more
        than what is written. And the size it has."""
        while self._spent:
            spent = self._spent.pop()
            with contextlib.suppress(OSError):
                os.rename(os.path.join(directory, spent), place)
                return os.open(place, OVER), size_in(spent)
        return os.open(place, NEW, 0o600), 0

    def _make_room(self, directory: str, needed: int) -> None:
        """Now and then, and then for some more: listing, and removing right after a sync, wait for the disk."""
        entries, size = self._spare
        self._spare = entries - 1, size - needed
        if entries > 0 and size > needed:
            return
        kept, left = 0, UNDO_BYTES - needed
        names = sorted(self._names(directory), reverse=True)
        for name in names[: UNDO_ENTRIES - 1]:
            left -= size_in(name)
            if left < SPARE_BYTES:
                break
            kept += 1
        small = [name for name in names[kept:] if size_in(name) <= SPENT_BYTES]
        self._spent = small[:SPARE_ENTRIES]
        for name in set(names[kept:]).difference(self._spent):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(directory, name))
        self._spare = SPARE_ENTRIES, SPARE_BYTES

    @staticmethod
    def _names(directory: str) -> list[str]:
        try:
            return [name for name in os.listdir(directory) if name[:1].isdigit() and name.count("-") == 2]
        except OSError:
            return []

    # ---- looking ----

    def entries(self, limit: int) -> list[Entry]:
        """The newest first, without their content; those that cannot be read are passed over."""
        found: list[Entry] = []
        for name in self._newest():
            if len(found) == limit:
                break
            with contextlib.suppress(Failure):
                found.append(self._read(name, with_content=False))
        return found

    def _newest(self) -> list[str]:
        return sorted(self._names(self._directory or ""), reverse=True)[:UNDO_ENTRIES]

    def find(self, prefix: str) -> Entry:
        """The one whose id begins like this."""
        named = [name for name in self._newest() if name.split("-")[1].startswith(prefix)]
        if not named or not prefix:
            raise Failure(f"no undo entry {prefix}", "invalid_args", "list them with action list")
        if len(named) > 1:
            raise Failure(
                f"{len(named)} undo entries begin with {prefix}", "invalid_args", "give more of the id"
            )
        return self._read(named[0], with_content=True)

    def _read(self, name: str, *, with_content: bool) -> Entry:
        import json

        when, name_id, _ = name.split("-")
        try:
            fd = os.open(os.path.join(self._directory or "", name), HELD)
            with open(fd, "rb") as file:
                header = json.loads(file.readline())
                content = _unpacked(header, file.read()) if with_content else None
            workspace, size, created = header["workspace"], int(header.get("size", 0)), "digest" not in header
            where = str(header["tool"]), str(header["path"]), str(header["place"])
        except (OSError, ValueError, KeyError, TypeError):
            raise Failure(f"undo entry {name_id} is corrupted", "conflict") from None
        if workspace != self._workspace:
            raise Failure(f"undo entry {name_id} is of another workspace", "conflict")
        return Entry(name_id, int(when) / 1e9, *where, size, created, content)

    def clear(self) -> int:
        """How many there were."""
        names = self._names(self._directory or "")
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._directory or "", name))
        return min(len(names), UNDO_ENTRIES)


def size_in(name: str) -> int:
    return int(name.rpartition("-")[2])


def _packed(content: bytes) -> bytes:
    import zlib

    return zlib.compress(content, 1)


def _unpacked(header: dict[str, str], packed: bytes) -> bytes | None:
    """ValueError if it is not what was put there."""
    if "digest" not in header:
        return None
    content = packed
    if header.get("packed"):
        import zlib

        try:
            content = zlib.decompressobj().decompress(packed, UNDO_FILE_BYTES + 1)
        except zlib.error as error:
            raise ValueError(str(error)) from None
    if digest(content) != header["digest"]:
        raise ValueError("another content")
    return content
