"""A log that can be checked: each line names the hash of the one before it, and the head names the last.

    audit/head              one line: the last record, where it ends, and where the kept part begins
    audit/000001.jsonl …    the records; the oldest file goes when there are too many

Several processes write at once: whoever holds the lock on the head appends. Nothing is synced to the disk: after a
power cut the end may be missing, and `verify` says so.
"""

from __future__ import annotations

import fcntl
import os
import time
from _json import encode_basestring_ascii as quoted
from _thread import allocate_lock

from corral.digest import digest
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Value = str | int | bool | None

HEAD = "head"
SUFFIX = ".jsonl"
FORMAT = "corral-audit-1"
GENESIS = "0" * 64
HEAD_BYTES = 256  # of fixed length: a shorter head leaves nothing of a longer one behind
SEGMENT_BYTES = 8 << 20
SEGMENTS = 8
LINE_LIMIT = 64 << 10


class Position(Record):
    """Where the log stands. ``base_*`` is the last record before the oldest that is kept."""

    segment: int
    count: int
    hash: str
    size: int
    first: int
    base_count: int
    base_hash: str

    def encode(self) -> bytes:
        words = (FORMAT, *(str(value) for value in self._values()))
        return " ".join(words).ljust(HEAD_BYTES - 1).encode() + b"\n"

    @classmethod
    def decode(cls, raw: bytes) -> Position | None:
        """None if it is no head of ours."""
        words = raw.decode("ascii", "replace").split()
        if len(words) != 8 or words[0] != FORMAT:
            return None
        try:
            segment, count, size, first, base_count = (int(words[n]) for n in (1, 2, 4, 5, 6))
        except ValueError:
            return None
        return cls(segment, count, words[3], size, first, base_count, words[7])


START = Position(1, 0, GENESIS, 0, 1, 0, GENESIS)


class Log:
    """Append-only. Opened when first written to; safe for threads, for processes, and across a fork."""

    def __init__(
        self, directory: str, *, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS
    ) -> None:
        self.directory = directory
        self.segment_bytes = segment_bytes
        self.segments = segments
        self._lock = allocate_lock()
        self._owner = 0
        self._head = self._file = -1
        self._position = START
        self._written = b""

    def append(self, kind: str, fields: Mapping[str, Value]) -> str:
        """Add a record and give back its hash, which is the hash of the whole log up to it."""
        with self._lock:
            self._open()
            fcntl.flock(self._head, fcntl.LOCK_EX)
            try:
                self._settle()
                if self._position.size >= self.segment_bytes:
                    self._rotate()
                self._add(kind, fields)
                return self._position.hash
            finally:
                fcntl.flock(self._head, fcntl.LOCK_UN)

    def close(self) -> None:
        with self._lock:
            self._forget()

    # ---- one record, under the lock ----

    def _add(self, kind: str, fields: Mapping[str, Value]) -> None:
        at = self._position
        line = line_of(at.count + 1, kind, fields, at.hash)
        written = os.write(self._file, line + b"\n")
        if written != len(line) + 1:  # the disk is full: a half line would break the chain
            os.ftruncate(self._file, at.size)
            raise OSError(28, "no space left for the record")
        self._move(at.replace(count=at.count + 1, hash=digest(line), size=at.size + written))

    def _move(self, position: Position) -> None:
        self._position = position
        self._written = position.encode()
        os.pwrite(self._head, self._written, 0)

    def _settle(self) -> None:
        """Stand where the log stands now, whoever wrote last, and whatever happened to it."""
        raw = os.pread(self._head, HEAD_BYTES, 0)
        if raw != self._written:
            found = Position.decode(raw) if raw else START
            if found is None:
                self._break("the head was unreadable", START)
                return
            if not raw and segment_numbers(self.directory):
                self._break("the head was missing", START)
                return
            if found.segment != self._position.segment:
                self._close_file()
            self._position, self._written = found, raw
        if self._file < 0:
            self._file = self._segment_file(self._position.segment)
        info = os.fstat(self._file)
        if info.st_size == self._position.size and info.st_nlink:
            return
        if info.st_nlink and self._catch_up(info.st_size):
            return
        self._break("lines were removed from or added to the log", self._position)

    def _catch_up(self, size: int) -> bool:
        """A writer that was ended between its record and the head left a record that fits: it counts."""
        at = self._position
        added = (
            os.pread(self._file, size - at.size, at.size) if at.size < size <= at.size + LINE_LIMIT else b""
        )
        if not added.endswith(b"\n"):
            return False
        line = added[:-1]
        if b"\n" in line or not line.endswith(ending(at.hash)):
            return False
        self._move(at.replace(count=at.count + 1, hash=digest(line), size=size))
        return True

    def _break(self, reason: str, at: Position) -> None:
        """The chain is broken and stays so, for `verify` to find; what happens from now on is recorded all the same."""
        numbers = segment_numbers(self.directory)
        self._close_file()
        fresh = max((at.segment, *numbers)) + 1
        first = at.first if at.count else min((fresh, *numbers))
        self._file = self._segment_file(fresh)
        self._position = at.replace(segment=fresh, size=0, first=first)
        self._add("break", {"reason": reason})

    # ---- files ----

    def _rotate(self) -> None:
        at = self._position
        self._close_file()
        self._file = self._segment_file(at.segment + 1)
        size = os.fstat(self._file).st_size
        self._position = at.replace(segment=at.segment + 1, size=0)
        if size and not self._catch_up(size):
            self._break("a file of the log was there before its time", self._position)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        at = self._position
        first = at.segment - self.segments + 1
        if first <= at.first:
            return
        base = self._base_of(first)
        if base is None:
            return
        self._move(at.replace(first=first, base_count=base[0], base_hash=base[1]))
        for number in segment_numbers(self.directory):
            if number < first:
                os.unlink(segment_path(self.directory, number))

    def _base_of(self, number: int) -> tuple[int, str] | None:
        """The record before the first one of that file: its number and its hash, as the first one has them."""
        at = self._position
        if number == at.segment and at.size == 0:
            return at.count, at.hash
        try:
            with open(segment_path(self.directory, number), "rb") as file:
                line = file.readline(LINE_LIMIT)
        except FileNotFoundError:
            return None
        start, previous = line.partition(b",")[0], line[-67:-3].decode("ascii", "replace")
        text = start.removeprefix(b'{"n":')
        return (int(text) - 1, previous) if text.isdigit() else None

    def _open(self) -> None:
        if self._owner == os.getpid():
            return
        self._forget()  # after a fork the descriptors are shared, and with them the lock
        os.makedirs(self.directory, 0o700, exist_ok=True)
        self._head = _opened(os.path.join(self.directory, HEAD), os.O_RDWR)
        self._owner = os.getpid()

    def _segment_file(self, number: int) -> int:
        return _opened(segment_path(self.directory, number), os.O_RDWR | os.O_APPEND)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _forget(self) -> None:
        self._close_file()
        if self._head >= 0:
            os.close(self._head)
        self._head, self._owner, self._written = -1, 0, b""


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


# ---- the form of a line ----


def line_of(count: int, kind: str, fields: Mapping[str, Value], previous: str) -> bytes:
    """A flat object. The number comes first and the hash of the line before comes last, for whoever reads bytes."""
    parts = [f'"n":{count},"time":"{_now()}","kind":"{kind}"']
    parts += [f'"{name}":{_literal(value)}' for name, value in fields.items() if value is not None]
    return ("{" + ",".join(parts)).encode() + ending(previous)


def ending(previous: str) -> bytes:
    return f',"previous":"{previous}"}}'.encode()


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return quoted(value)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


_second: tuple[int, str] = (0, "")


def _now() -> str:
    global _second
    seconds, milliseconds = divmod(int(time.time() * 1000), 1000)
    known, text = _second
    if known != seconds:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        _second = seconds, text
    return f"{text}.{milliseconds:03d}Z"


# ---- the names of the files ----


def segment_path(directory: str, number: int) -> str:
    return os.path.join(directory, f"{number:06d}{SUFFIX}")


def segment_numbers(directory: str) -> list[int]:
    """The files of records that are there, oldest first."""
    return sorted(_numbers(os.listdir(directory)))


def _numbers(names: list[str]) -> Iterator[int]:
    for name in names:
        stem = name.removesuffix(SUFFIX)
        if stem != name and stem.isdigit():
            yield int(stem)
