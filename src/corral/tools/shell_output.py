"""What a command printed, on its way to an answer: the end of it in memory, all of it in a spill file once that is
needed, and never more of either than the bounds say."""

from __future__ import annotations

from corral.record import Record
from corral.tools.failures import Failure
from corral.tools.limits import (
    KB,
    MB,
    SHELL_MEMORY_BYTES,
    SHELL_SHOWN_BYTES,
    SHELL_SHOWN_LINES,
    SPILL_BYTES,
)
from corral.tools.text import collapse, cut_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.tools.spills import Spill, Spills


class Shown(Record):
    """``text``: the end of the output as it is answered. ``lines``, ``bytes``: of all of it. ``spill``: where all of
    it, or as much as is kept, can be read; empty if the text is all there is. ``rewritten``: what was done to it."""

    text: str
    lines: int
    bytes: int
    shown_lines: int
    spill: str
    rewritten: tuple[str, ...]


class Collector:
    """Takes the output piece by piece; the streaming layer below keeps the last of it."""

    def __init__(self, spills: Spills) -> None:
        self._spills = spills
        self._spill: Spill | None = None
        self._early: list[bytes] = []
        self._no_spill = False
        self._ends_line = True
        self.bytes = 0
        self._newlines = 0

    def add(self, piece: bytes) -> None:
        self.bytes += len(piece)
        self._newlines += piece.count(b"\n")
        self._ends_line = piece.endswith(b"\n")
        if self._spill is not None:
            self._spill.write(piece)
        elif self.bytes > SHELL_MEMORY_BYTES:
            self._start_spill([*self._early, piece])
            self._early = []
        else:
            self._early.append(piece)

    @property
    def lines(self) -> int:
        return self._newlines + (not self._ends_line)

    def _start_spill(self, pieces: list[bytes]) -> None:
        """Where there is nowhere to put it, the rest is gone; the end of it is still shown."""
        if self._no_spill:
            return
        try:
            self._spill = self._spills.new()
        except (Failure, OSError):
            self._no_spill = True
            return
        for piece in pieces:
            self._spill.write(piece)

    def shown(self, tail: bytes) -> Shown:
        """``tail``: what is left in memory of the end of it."""
        lines = _lines(tail, whole=len(tail) == self.bytes)
        short = [cut_line(line) for line in lines]
        tidy = collapse(short)
        kept = _last(tidy)
        rewritten = [
            what
            for what, is_so in (
                ("long lines cut", short != lines),
                ("identical lines collapsed", tidy != short),
            )
            if is_so
        ]
        is_all = len(kept) == len(tidy) and len(tail) == self.bytes and short == lines
        path = "" if is_all else self._finished()
        text = "\n".join(kept)
        if not is_all:
            text += self._notice(min(len(kept), self.lines), len(text.encode("utf-8", "replace")), path)
        return Shown(text, self.lines, self.bytes, min(len(kept), self.lines), path, tuple(rewritten))

    def _notice(self, lines: int, size: int, path: str) -> str:
        where = f"Full output: {path}"
        if not path:
            where = "The rest was not kept: there is no state directory"
        elif self._spill is not None and self._spill.dropped:
            where = f"The first {SPILL_BYTES // MB} MB of it: {path}"
        return f"\n[Showing {lines} of {self.lines} lines ({_size(size)} of {_size(self.bytes)}). {where}]"

    def _finished(self) -> str:
        if self._spill is None:
            self._start_spill(self._early)
        return self._spill.finish() if self._spill is not None else ""

    def discard(self) -> None:
        """Harmless after `shown`."""
        if self._spill is not None:
            self._spill.discard()


def _lines(tail: bytes, *, whole: bool) -> list[str]:
    if not whole:
        tail = tail[tail.find(b"\n") + 1 :] or tail  # the first line lost its beginning
    text = tail.decode("utf-8", "replace")
    return text.removesuffix("\n").split("\n") if text else []


def _last(lines: list[str]) -> list[str]:
    """The last lines that fit both bounds; the very last one always, though maybe not all of it."""
    kept: list[str] = []
    room = SHELL_SHOWN_BYTES
    for line in reversed(lines[-SHELL_SHOWN_LINES:]):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        kept.append(line)
    kept.reverse()
    return kept


def _size(count: int) -> str:
    if count < KB:
        return f"{count} B"
    return f"{count / KB:.1f} KB" if count < MB else f"{count / MB:.1f} MB"
