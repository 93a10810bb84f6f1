"""Patches as models write them: ``*** Begin Patch``, files that are added, deleted or updated, ``*** End Patch``.

An update is a list of hunks: ``@@`` with a line to look for first, lines that stay (a blank in front), go (``-``) and
come (``+``), and ``*** End of File`` where the hunk must be the last. Lines that stay keep every byte they have.
"""

from __future__ import annotations

from corral.record import Record
from corral.tools.failures import Failure, invalid
from corral.tools.folding import ALIKE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    Kind = Literal["add", "delete", "update"]

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
MOVE = "*** Move to:"
HEADERS: dict[str, Kind] = {
    "*** Add File: ": "add",
    "*** Delete File: ": "delete",
    "*** Update File: ": "update",
}
# How lines are compared, the strictest way first.
WAYS: tuple[Callable[[str], str], ...] = (
    str,
    str.rstrip,
    str.strip,
    lambda line: line.translate(ALIKE).strip(),
)


class Hunk:
    """``seek``: lines to find first, one after the other. ``lines``: as they are in the patch."""

    __slots__ = ("at_end", "lines", "number", "seek")

    def __init__(self, number: int) -> None:
        self.number = number
        self.seek: list[str] = []
        self.lines: list[str] = []
        self.at_end = False

    @property
    def old(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] != "+"]


class Operation(Record):
    kind: Kind
    path: str
    text: str = ""
    hunks: tuple[Hunk, ...] = ()


# ---- reading ----


def parse(patch: str) -> list[Operation]:
    lines = patch.replace("\r\n", "\n").strip().split("\n")
    if lines[0].strip() != BEGIN:
        raise invalid(f"a patch begins with {BEGIN}")
    if lines[-1].strip() != END:
        raise invalid(f"a patch ends with {END}")
    operations: list[Operation] = []
    at = 1
    while at < len(lines) - 1:
        at = _operation(lines, at, operations)
    if not operations:
        raise invalid("the patch is empty")
    return operations


def _operation(lines: list[str], at: int, operations: list[Operation]) -> int:
    """Reads one and returns where the next begins."""
    if not lines[at].strip():
        return at + 1
    header = next((header for header in HEADERS if lines[at].startswith(header)), "")
    if not header:
        raise invalid(f"line {at + 1} of the patch: {_shown(lines[at])} is no file header")
    kind, path = HEADERS[header], lines[at].removeprefix(header).strip()
    if not path:
        raise invalid(f"line {at + 1} of the patch names no file")
    at += 1
    end = next(i for i in range(at, len(lines)) if lines[i].startswith((*HEADERS, END)))
    body = lines[at:end]
    if kind == "add":
        operations.append(Operation(kind, path, _added(body, at)))
    elif kind == "delete":
        if any(line.strip() for line in body):
            raise invalid(f"line {at + 1} of the patch: a file that is deleted has no lines")
        operations.append(Operation(kind, path))
    else:
        operations.append(Operation(kind, path, hunks=tuple(_hunks(body, at, path))))
    return end


def _added(body: list[str], at: int) -> str:
    while body and not body[-1]:
        body = body[:-1]
    for number, line in enumerate(body, at + 1):
        if not line.startswith("+"):
            raise invalid(f"line {number} of the patch: {_shown(line)} does not begin with +")
    return "".join(line[1:] + "\n" for line in body)


def _hunks(body: list[str], at: int, path: str) -> list[Hunk]:
    hunks: list[Hunk] = []
    current = Hunk(1)
    for number, line in enumerate(body, at + 1):
        if line.startswith(MOVE):
            raise invalid(f"{path}: a patch cannot move files", "add the new file and delete the old one")
        if line.startswith("@@"):
            if current.lines:
                hunks.append(current)
                current = Hunk(len(hunks) + 1)
            context = line[2:].removeprefix(" ")
            if context.strip():
                current.seek.append(context)
        elif line.strip() == END_OF_FILE:
            current.at_end = True
        elif not line:
            current.lines.append(" ")  # an empty line that stays, its blank lost on the way
        elif line[0] in " +-":
            current.lines.append(line)
        else:
            raise invalid(f"line {number} of the patch: {_shown(line)} does not begin with a blank, + or -")
    if current.lines:
        hunks.append(current)
    if not hunks:
        raise invalid(f"{path}: an update without changes")
    return hunks


def _shown(line: str) -> str:
    return repr(line if len(line) < 80 else line[:80] + "...")


# ---- applying ----


class Line:
    """One of a file: its text, and how it ends."""

    __slots__ = ("end", "text")

    def __init__(self, text: str, end: str) -> None:
        self.text = text
        self.end = end


def lines_of(text: str) -> list[Line]:
    parts = text.split("\n")
    lines = [Line(part[:-1], "\r\n") if part.endswith("\r") else Line(part, "\n") for part in parts[:-1]]
    return [*lines, Line(parts[-1], "")] if parts[-1] else lines


def updated(text: str, operation: Operation) -> str:
    """The new text of a file; a Failure says which hunk does not fit."""
    lines = lines_of(text)
    made: list[Line] = []
    done = 0
    for hunk in operation.hunks:
        start = _place(lines, done, hunk, operation.path)
        made += lines[done:start]
        done = _put(hunk, lines, start, made)
    made += lines[done:]
    _keep_last_end(made, lines)
    return "".join(line.text + line.end for line in made)


def _place(lines: list[Line], done: int, hunk: Hunk, path: str) -> int:
    start = done
    for wanted in hunk.seek:
        found = _find(lines, [wanted], start, at_end=False)
        if found is None:
            raise Failure(
                f"{path}: hunk {hunk.number}: no line {_shown(wanted)} behind line {start}", "edit_not_found"
            )
        start = found + 1
    old = hunk.old
    if not old:  # only new lines: behind the line that was looked for, or at the end
        return start if hunk.seek and not hunk.at_end else len(lines)
    place = _find(lines, old, start, at_end=hunk.at_end)
    if place is None and hunk.seek and hunk.seek[-1].strip() == old[0].strip():
        place = _find(
            lines, old, start - 1, at_end=hunk.at_end
        )  # the line of @@ stands in the hunk once more
    if place is None:
        raise Failure(
            f"{path}: hunk {hunk.number} does not fit: {_shown(old[0])} and {len(old) - 1} more lines not found",
            "edit_not_found",
            "read the file again and make the patch from what stands there",
        )
    return place


def _find(lines: list[Line], wanted: list[str], start: int, *, at_end: bool) -> int | None:
    last = len(lines) - len(wanted)
    places = [last] if at_end and last >= start else range(start, last + 1)
    for way in WAYS:
        looked_for = [way(line) for line in wanted]
        for place in places:
            if way(lines[place].text) == looked_for[0] and all(
                way(lines[place + i].text) == line for i, line in enumerate(looked_for)
            ):
                return place
    return None


def _put(hunk: Hunk, lines: list[Line], at: int, made: list[Line]) -> int:
    """What the hunk makes of the lines from a place on; returns how far it got."""
    gone: list[str] = []  # ends of lines that went, for those that come in their place
    for line in hunk.lines:
        if line[0] == "+":
            made.append(Line(line[1:], gone.pop(0) if gone else _end_near(lines, at)))
            continue
        if line[0] == "-":
            gone.append(lines[at].end)
        else:
            made.append(lines[at])
            gone = []
        at += 1
    return at


def _end_near(lines: list[Line], at: int) -> str:
    for number in (at - 1, at, at - 2):
        if 0 <= number < len(lines) and lines[number].end:
            return lines[number].end
    return "\n"


def _keep_last_end(made: list[Line], before: list[Line]) -> None:
    """Lines inside have an end; the last one has one if the last one had."""
    for number, line in enumerate(made[:-1]):
        if not line.end:
            made[number] = Line(line.text, _end_near(before, len(before) - 1))
    if made and before and bool(made[-1].end) != bool(before[-1].end):
        end = before[-1].end and _end_near(before, len(before))
        made[-1] = Line(made[-1].text, end)
