"""Edits: finding a text in a file and replacing it, without touching a byte that was not asked to change.

A file's bytes are decoded so that all of them come back, whatever they are. What is found by a looser comparison is
replaced piece by piece: where the old and the new text agree, the file keeps what it has.
"""

from __future__ import annotations

from corral.record import Record
from corral.tools.failures import Failure
from corral.tools.folding import Folded, fold_alike, fold_line_ends
from corral.tools.limits import AMBIGUOUS_LINES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    How = Literal["exact", "fuzzy"]
    # From and to in the text, and what goes there.
    Piece = tuple[int, int, str]

BOM = "\ufeff"
NEAREST_LINES = 20_000
NEAREST_SHOWN = 120
COMPARED_LINES = 2_000  # more than that are replaced as one
COMPARED_LETTERS = 1_000
QUOTES = "\"'"


class Text:
    """The text of a file. What :meth:`encode` gives for it unchanged are the very bytes it was made from."""

    def __init__(self, content: bytes) -> None:
        whole = content.decode("utf-8", "surrogateescape")
        self.mark = BOM if whole.startswith(BOM) else ""
        self.text = whole.removeprefix(BOM)
        self._lines: Folded | None = None
        self._alike: Folded | None = None

    def encode(self, text: str) -> bytes:
        return encode(self.mark + text)

    @property
    def lines(self) -> Folded:
        if self._lines is None:
            self._lines = fold_line_ends(self.text)
        return self._lines

    @property
    def alike(self) -> Folded:
        if self._alike is None:
            self._alike = fold_alike(self.text)
        return self._alike


def encode(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise Failure(
            f"a text with half a character in it: {error.object[error.start]!r}", "invalid_args"
        ) from None


class Edit(Record):
    """Found, and ready to be made. ``start`` and ``end``: what was found, in the text. Lines are counted from 1."""

    how: How
    start: int
    end: int
    pieces: tuple[Piece, ...]
    first_line: int
    last_line: int
    new_lines: int


def find_edit(text: Text, old: str, new: str, *, any_indent: bool = False) -> Edit:
    """Where the old text stands, once only, and what has to be put there. A Failure if that cannot be told."""
    old, new = old.removeprefix(BOM), new.removeprefix(BOM)
    if not old:
        raise Failure("old_text is empty", "old_text_empty", "write_file writes a whole file")
    if old == new:
        raise Failure("old_text and new_text are the same", "edit_no_change")
    plain = old.replace("\r\n", "\n")
    for how, folded, wanted in _tries(text, old, plain):
        places = _places(folded.text, wanted) if wanted else []
        if len(places) > 1:
            raise _not_unique(folded.text, places)
        if places:
            start = places[0]
            return _made(text, folded, how, start, start + len(wanted), plain, new)
    if any_indent:
        found = _by_lines(text, plain, new)
        if found is not None:
            return found
    raise _not_found(text, old)


def _tries(text: Text, old: str, plain: str) -> Iterator[tuple[How, Folded, str]]:
    """What to look for in what, the strictest comparison first."""
    yield "exact", Folded(text.text, text.text, ()), old
    if "\r\n" in text.text or plain != old:
        yield "exact", text.lines, plain
    yield "fuzzy", text.alike, fold_alike(old).text


def apply_edits(text: Text, edits: list[Edit]) -> str:
    """The new text. Edits that overlap must have been refused before."""
    pieces = sorted(piece for edit in edits for piece in edit.pieces)
    kept, done = [], 0
    for start, end, new in pieces:
        kept += [text.text[done:start], new]
        done = end
    return "".join([*kept, text.text[done:]])


def _places(text: str, wanted: str) -> list[int]:
    """All of them, also those that overlap."""
    found = []
    at = text.find(wanted)
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def _made(text: Text, folded: Folded, how: How, start: int, end: int, old: str, new: str) -> Edit:
    """``start`` and ``end`` are places in the folded text; ``old`` is what was asked for there, line ends folded."""
    original = text.text
    first, last = folded.start(start), folded.end(end)
    line_end = _line_end(original, first)
    as_it_is = how == "exact" and "\r" not in original
    if as_it_is or ("\r\n" in new and line_end == "\n"):
        pieces: tuple[Piece, ...] = ((first, last, new),)
    else:
        plain = new.replace("\r\n", "\n")
        pieces = tuple(_pieces(folded, start, end, old, plain, line_end))
    first_line = folded.text.count("\n", 0, start) + 1
    inside = folded.text[start:end]
    last_line = first_line + inside.count("\n") - inside.endswith("\n")
    return Edit(how, first, last, pieces, first_line, last_line, _line_count(new))


def _line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _line_end(text: str, start: int) -> str:
    """How lines end here: in the place itself, behind it, before it."""
    at = text.find("\n", start)
    if at < 0:
        at = text.rfind("\n", 0, start)
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


# ---- what has to change ----


def _pieces(folded: Folded, start: int, end: int, old: str, new: str, line_end: str) -> Iterator[Piece]:
    """Only what differs between the old and the new text, line by line. What was found has the lines of the old text,
    though perhaps not letter by letter."""
    found = folded.text[start:end]
    for first, last, put in _differences(found, old, new):
        a, b = start + first, start + last
        put = put.replace("\n", line_end) if line_end != "\n" else put
        if first == last:
            place = folded.end(a) if a > start else folded.start(a)
            yield place, place, put
        else:
            yield folded.start(a), folded.end(b), put


def _differences(found: str, old: str, new: str) -> Iterator[Piece]:
    """Places in what was found, and what goes there."""
    found_lines, old_lines, new_lines = _lines(found), _lines(old), _lines(new)
    if len(found_lines) != len(old_lines):
        yield 0, len(found), new
        return
    starts = _starts(found_lines, 0)
    for i, j, k, m in _changed(old_lines, new_lines):
        if j - i == m - k:
            for at in range(j - i):
                yield from _in_line(starts[i + at], found_lines[i + at], old_lines[i + at], new_lines[k + at])
        else:
            gone, come = "".join(found_lines[i:j]), "".join(new_lines[k:m])
            both = gone.endswith("\n") and come.endswith("\n")
            yield starts[i], starts[j] - both, come[: len(come) - both]


def _in_line(at: int, found: str, old: str, new: str) -> Iterator[Piece]:
    """Letter by letter, unless quotes are among what changes: half of a pair of quotes must not be of another kind."""
    both = found.endswith("\n") and new.endswith("\n")
    whole = (at, at + len(found) - both, new[: len(new) - both])
    if len(found) != len(old) or len(old) + len(new) > COMPARED_LETTERS:
        yield whole
        return
    from difflib import SequenceMatcher

    codes = [
        code for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if code[0] != "equal"
    ]
    if any(quote in old[i:j] + new[k:m] for _, i, j, k, m in codes for quote in QUOTES):
        yield whole
        return
    for _, i, j, k, m in codes:
        yield at + i, at + j, new[k:m]


def _lines(text: str) -> list[str]:
    """With their line feeds. (``splitlines`` would end a line at other characters too.)"""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return lines + parts[-1:] if parts[-1] else lines


def _starts(lines: list[str], first: int) -> list[int]:
    starts = [first]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _changed(old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    """Lines of the old text that are replaced, and the lines of the new one that replace them."""
    if len(old) + len(new) > COMPARED_LINES:
        return [(0, len(old), 0, len(new))]
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [opcode[1:] for opcode in matcher.get_opcodes() if opcode[0] != "equal"]


# ---- without the indentation ----


def _by_lines(text: Text, old: str, new: str) -> Edit | None:
    """Whole lines that are the same but for how far they are indented; the new ones are indented like those found."""
    folded = text.alike
    wanted = [line.strip(" \t") for line in fold_alike(old.strip("\n")).text.split("\n")]
    there = folded.text.split("\n")
    stripped = [line.strip(" \t") for line in there]
    count = len(wanted)
    if not any(wanted):
        return None
    found = [i for i in range(len(there) - count + 1) if stripped[i : i + count] == wanted]
    starts = _starts([line + "\n" for line in there], 0)
    if len(found) > 1:
        raise _not_unique(folded.text, [starts[i] for i in found])
    if not found:
        return None
    first = found[0]
    start, end = starts[first], starts[first + count] - 1
    here = "\n".join(there[first : first + count])
    moved = _indented(new.replace("\r\n", "\n").strip("\n"), _indent(old.strip("\n")), _indent(here))
    return _made(text, folded, "fuzzy", start, end, here, moved)


def _indent(text: str) -> str:
    """Of the first line that is not blank."""
    line = next((line for line in text.split("\n") if line.strip()), "")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indented(text: str, before: str, after: str) -> str:
    def moved(line: str) -> str:
        if not line.strip():
            return line
        return after + (line.removeprefix(before) if line.startswith(before) else line.lstrip(" \t"))

    return "\n".join(map(moved, text.split("\n")))


# ---- what went wrong ----


def _not_unique(text: str, places: list[int]) -> Failure:
    numbers = [text.count("\n", 0, place) + 1 for place in places[:AMBIGUOUS_LINES]]
    more = len(places) - len(numbers)
    shown = ", ".join(map(str, numbers)) + (f" ... and {more} more" if more else "")
    return Failure(
        f"old_text found {len(places)} times, at lines {shown}",
        "edit_not_unique",
        "add lines before or after it until it is the only one",
    )


def _not_found(text: Text, old: str) -> Failure:
    lines = text.lines.text.split("\n")
    count = len(lines) - (not lines[-1])
    near = _nearest(lines[:NEAREST_LINES], old)
    return Failure(
        f"old_text not found; the file has {count} lines" + (f", the nearest is {near}" if near else ""),
        "edit_not_found",
        "read the file again and copy the text as it stands there",
    )


def _nearest(lines: list[str], old: str) -> str:
    """The line that shares most words with the first line of the old text."""
    first = next((line for line in old.split("\n") if line.strip()), "")
    words = set(first.split())
    if not words:
        return ""
    best, number = max(
        ((len(words.intersection(line.split())), -i) for i, line in enumerate(lines, 1)), default=(0, 0)
    )
    if not best:
        return ""
    shown = lines[-number - 1].strip()
    shown = shown if len(shown) <= NEAREST_SHOWN else shown[:NEAREST_SHOWN] + "..."
    return f"line {-number}: {shown}"
