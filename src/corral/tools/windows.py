"""A window on a text: which lines of it are shown, and what is said about the others."""

from __future__ import annotations

from corral.record import Record
from corral.tools.arguments import Arguments, arg
from corral.tools.failures import invalid
from corral.tools.limits import KB, READ_CHUNK_BYTES, READ_MIDDLE_LINES, READ_WINDOW_LINES
from corral.tools.text import cut_lines, notice, runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

BOM = b"\xef\xbb\xbf"
# Files in which a pair of braces is a block.
BRACES = (".go", ".java", ".c", ".cpp", ".h", ".hpp", ".rs", ".ts", ".tsx", ".js", ".jsx")


class Window(Arguments):
    """What read_file and multi_read are asked for."""

    path: str = arg("the file, relative to the workspace")
    start_line: int = arg("first line, from 1", 0, least=0)
    end_line: int = arg("last line; 0: up to 2000 lines", 0, least=0)
    tail: int = arg("only the last so many lines; goes before start_line", 0, least=0)
    line_numbers: bool = arg("begin every line with its number", True)
    truncate: Literal["head", "tail", "middle", "none", "smart"] = arg(
        "what to keep of more than 2000 lines; none: also long and repeated lines stay whole", "head"
    )


class Shown(Record):
    """``truncation`` is None if all that was asked for is there."""

    text: str
    truncation: dict[str, Any] | None = None


class Lines:
    """The lines of a content, without their ends; a window of them is decoded only when it is shown."""

    def __init__(self, content: bytes) -> None:
        self.size = len(content)
        self.raw = content.removeprefix(BOM).split(b"\n")
        self.ends_with_newline = not self.raw[-1]
        if self.ends_with_newline:
            self.raw.pop()
        self.count = len(self.raw)

    def text(self, first: int, last: int) -> list[str]:
        """From a line to a line, both included, counted from 1."""
        raw = self.raw[first - 1 : last]
        return b"\n".join(raw).decode("utf-8", "replace").split("\n") if raw else []


Span = tuple[int, int]


def show(content: bytes, wanted: Window) -> Shown:
    lines = Lines(content)
    asked = _asked(lines, wanted)
    if asked is None:
        return Shown("")
    spans, too_long = _kept(lines, asked, wanted)
    if too_long:
        hint = _long_line(too_long, lines, wanted.path)
        return Shown(hint, _truncation(lines, 0))
    parts = [_told(lines, span, spans[-1][1], wanted) for span in spans]
    hint = _hint(lines, asked, spans, wanted)
    if len(spans) == 2:
        parts.insert(1, _middle_hint(asked, spans))
    elif not hint and not wanted.line_numbers and lines.ends_with_newline and spans[-1][1] == lines.count:
        parts.append("")
    if hint:
        parts.append(hint)
    count = sum(last - first + 1 for first, last in spans)
    is_whole = count == asked[1] - asked[0] + 1
    return Shown("\n".join(parts), None if is_whole else _truncation(lines, count))


def _asked(lines: Lines, wanted: Window) -> Span | None:
    if wanted.tail:
        return (max(lines.count - wanted.tail, 0) + 1, lines.count) if lines.count else None
    first = wanted.start_line or 1
    if wanted.end_line and wanted.end_line < first:
        raise invalid(f"end_line {wanted.end_line} is before start_line {first}")
    if first > max(lines.count, 1):
        raise invalid(f"file has {lines.count} lines, start_line {first} is past end")
    if not lines.count:
        return None
    return first, min(wanted.end_line, lines.count) if wanted.end_line else lines.count


# ---- what is kept of it ----


def _kept(lines: Lines, asked: Span, wanted: Window) -> tuple[list[Span], int]:
    """The spans that are shown; or, if its first line alone is more than fits, that line."""
    first, last = asked
    strategy = wanted.truncate
    count = last - first + 1
    limit = count if strategy == "none" else min(count, READ_WINDOW_LINES)
    if strategy == "tail":
        fits = _fitting(lines, range(last, last - limit, -1), READ_CHUNK_BYTES)
        return [(last - fits + 1, last)], 0 if fits else last
    if strategy == "middle" and (
        count > READ_WINDOW_LINES or _fitting(lines, range(first, last + 1), READ_CHUNK_BYTES) < count
    ):
        return _middle(lines, first, last)
    fits = _fitting(lines, range(first, first + limit), READ_CHUNK_BYTES)
    if not fits:
        return [], first
    if strategy == "smart" and fits < count and wanted.path.lower().endswith(BRACES):
        fits = _whole_blocks(lines.text(first, first + fits - 1)) or fits
    return [(first, first + fits - 1)], 0


def _middle(lines: Lines, first: int, last: int) -> tuple[list[Span], int]:
    half = min(READ_MIDDLE_LINES, (last - first + 1) // 2)
    head = _fitting(lines, range(first, first + half), READ_CHUNK_BYTES // 2)
    tail = _fitting(lines, range(last, last - half, -1), READ_CHUNK_BYTES // 2)
    if not head:
        return [], first
    spans = [(first, first + head - 1)]
    if tail:
        spans.append((last - tail + 1, last))
    return spans, 0


def _fitting(lines: Lines, numbers: range, room: int) -> int:
    """How many of these lines, in their order, fit."""
    if lines.size < room:
        return len(numbers)
    for done, number in enumerate(numbers):
        room -= len(lines.raw[number - 1]) + 1
        if room < 0:
            return done
    return len(numbers)


def _whole_blocks(lines: list[str]) -> int:
    """So many of them that no block is cut; 0 if there is no such place. Braces in strings and comments are none."""
    depth, best = 0, 0
    inside = ""  # the quote, or */, that ends what we are in
    for number, line in enumerate(lines, 1):
        depth, inside = _after(line, depth, inside)
        if depth == 0 and not inside:
            best = number
        if inside in ('"', "'"):
            inside = ""  # these end with their line
    return best


def _after(line: str, depth: int, inside: str) -> tuple[int, str]:
    at = 0
    while at < len(line):
        character = line[at]
        if inside:
            if character == "\\" and inside != "*/":
                at += 1
            elif line.startswith(inside, at):
                at += len(inside) - 1
                inside = ""
        elif line.startswith("//", at):
            break
        elif line.startswith("/*", at):
            inside = "*/"
            at += 1
        elif character in "\"'`":
            inside = character
        else:
            depth += (character == "{") - (character == "}")
        at += 1
    return depth, inside


# ---- how it is told ----


def _told(lines: Lines, span: Span, highest: int, wanted: Window) -> str:
    first, last = span
    text = lines.text(first, last)
    left_out: list[Span] = []
    if wanted.truncate != "none":
        text = cut_lines(text)
        left_out = runs(text)
    if wanted.line_numbers:
        numbered = f"%{len(str(highest))}d\t%s"
        text = [numbered % pair for pair in enumerate(text, first)]
    if left_out:
        kept: list[str] = []
        done = 0
        for start, end in left_out:
            kept += text[done:start]
            kept.append(notice(end - start))
            done = end
        text = kept + text[done:]
    return "\n".join(text)


def _hint(lines: Lines, asked: Span, spans: list[Span], wanted: Window) -> str:
    first, last = spans[0][0], spans[-1][1]
    count = asked[1] - asked[0] + 1
    if first > asked[0] and len(spans) == 1:
        return f"[truncated: showing last {last - first + 1} of {count} lines]"
    if last == lines.count:
        return ""
    if last < asked[1] and (wanted.end_line or wanted.tail):
        shown = last - first + 1
        return f"[truncated: showing first {shown} of {count} lines — use start_line={last + 1} to continue]"
    # What is not shown is in the file itself, which read_file accepts; nothing is copied anywhere.
    return (
        f"[Showing lines {first}-{last} of {lines.count}. Use start_line={last + 1} to continue. "
        f"Remainder saved to {wanted.path}.]"
    )


def _middle_hint(asked: Span, spans: list[Span]) -> str:
    (first, head), (tail, last) = spans
    count = asked[1] - asked[0] + 1
    return (
        f"[truncated: showing first {head - first + 1} and last {last - tail + 1} of {count} lines — "
        f"use start_line={head + 1} to continue]"
    )


def _long_line(number: int, lines: Lines, path: str) -> str:
    import shlex

    size = len(lines.raw[number - 1])
    further = f"Use start_line={number + 1} to continue behind it, or" if number < lines.count else "Use"
    part = f"sed -n {number}p {shlex.quote(path)} | cut -c 1-{READ_WINDOW_LINES}"
    return (
        f"[Line {number} has {size} bytes, more than the {READ_CHUNK_BYTES // KB} KB of one answer. "
        f"{further} run_shell: {part}]"
    )


def _truncation(lines: Lines, shown: int) -> dict[str, Any]:
    return {"truncated": True, "totalLines": lines.count, "outputLines": shown}
