"""Content on its way: out of a descriptor as a whole, and into one piece by piece."""

from __future__ import annotations

import os

from corral.errors import FileTooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from codecs import IncrementalEncoder
    from collections.abc import Iterator
    from typing import Protocol

    class Readable(Protocol):
        def read(self, size: int, /) -> str | bytes: ...

    Content = str | bytes | bytearray | memoryview | Readable

CHUNK = 1 << 20


def read_all(fd: int, size: int, given: str, limit: int | None) -> bytes:
    """``size``: what the file said it has; it may be 0 for one that the kernel makes up, and it may have grown."""
    most = size if limit is None else min(size, limit)
    pieces = [os.read(fd, most + 1)]
    got = len(pieces[0])
    if got != size or not size:
        while pieces[-1] and (limit is None or got <= limit):
            pieces.append(os.read(fd, CHUNK))
            got += len(pieces[-1])
    if limit is not None and got > limit:
        raise FileTooLarge(f"{given} has more than {limit} bytes", path=given, rule="limit")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def pieces_of(content: Content, encoding: str) -> Iterator[bytes | memoryview]:
    if isinstance(content, str):
        yield content.encode(encoding)
    elif isinstance(content, bytes | bytearray | memoryview):
        yield memoryview(content).cast("B")
    else:
        encoder = encoder_for(encoding)
        while piece := content.read(CHUNK):
            yield encoder.encode(piece) if isinstance(piece, str) else piece


def encoder_for(encoding: str) -> IncrementalEncoder:
    """For text that comes in pieces: a mark at its beginning is written once."""
    import codecs

    return codecs.getincrementalencoder(encoding)()
