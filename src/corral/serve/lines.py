"""Lines from a descriptor, none of them kept beyond a limit, however long they are."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 18
SMALL = 1 << 14  # most lines are short, and room for a long one takes longer to get than they do to read
EDGE = 4096

# Members of an object that come before, or after, everything that is nested or long.
_SCALAR = r'(?:"(?:[^"\\]|\\.)*"|[-+.\w]+)'
_MEMBER = rf'\s*"\w+"\s*:\s*{_SCALAR}\s*'


class TooLong:
    """What is left of a line past the limit: how long it was, how it began and how it ended."""

    __slots__ = ("end", "size", "start")

    def __init__(self, size: int, start: bytes, end: bytes) -> None:
        self.size, self.start, self.end = size, start, end

    def member(self, name: str) -> str | int | None:
        """A member of the object on the line, if it stands at one of its edges: a string or a number.

        A quote inside a string is escaped, so what looks like a member there is none."""
        import json
        import re

        start, end = (edge.decode("utf-8", "replace") for edge in (self.start, self.end))
        wanted = rf'\s*"{re.escape(name)}"\s*:\s*({_SCALAR})\s*'
        found = re.match(rf"\s*\{{(?:{_MEMBER},)*{wanted}[,}}]", start)
        found = found or re.search(rf",{wanted}(?:,{_MEMBER})*\}}\s*\Z", end)
        if found is None:
            return None
        try:
            value = json.loads(found[1])
        except ValueError:
            return None
        return value if isinstance(value, str | int) and not isinstance(value, bool) else None


class _Growing:
    """A line that is still being read."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.pieces: list[bytes] = []
        self.over: TooLong | None = None

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.over is not None:
            self.over.size = self.size
            self.over.end = (self.over.end + piece)[-EDGE:]
        else:
            self.pieces.append(piece)
            if self.size > self.limit:
                whole = b"".join(self.pieces)
                self.over = TooLong(self.size, whole[:EDGE], whole[-EDGE:])
                self.pieces = []

    def take(self) -> bytes | TooLong:
        done: bytes | TooLong = self.over if self.over is not None else b"".join(self.pieces)
        self.size, self.pieces, self.over = 0, [], None
        return done


def lines(fd: int, limit: int, wait: Callable[[], bool] | None = None) -> Iterator[bytes | TooLong]:
    """Every line without its end, as soon as it is there. The last may have no end. ``wait`` is called before each read
    and ends the lines by saying no."""
    line, size = _Growing(limit), SMALL
    while (wait is None or wait()) and (chunk := os.read(fd, size)):
        size = CHUNK if len(chunk) == size else SMALL
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            line.add(piece)
            yield line.take()
        line.add(rest)
    if line.size:
        yield line.take()


def readable(source: int, sink: int) -> bool:
    """Wait for something to read; no if the one who reads what we write to ``sink`` is gone."""
    import select

    poll = select.poll()
    poll.register(source, select.POLLIN)
    poll.register(sink, 0)
    return all(fd != sink for fd, _ in poll.poll())


def whole_input(fd: int, limit: int) -> bytes | TooLong:
    """All there is to read, as one piece."""
    text = _Growing(limit)
    while chunk := os.read(fd, CHUNK):
        text.add(chunk)
    return text.take()
