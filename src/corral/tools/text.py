"""What happens to every tool's text: long lines are cut, repeated ones are told in one line."""

from __future__ import annotations

from corral.tools.limits import LINE_RUNES, REPEATED_LINES

ELLIPSIS = "..."


def cut_line(line: str, runes: int = LINE_RUNES) -> str:
    return line if len(line) <= runes else line[:runes] + ELLIPSIS


def cut_lines(lines: list[str]) -> list[str]:
    if max(map(len, lines), default=0) <= LINE_RUNES:
        return lines
    return [cut_line(line) for line in lines]


def notice(count: int) -> str:
    return f"[... {count} identical lines collapsed ...]"


def runs(lines: list[str]) -> list[tuple[int, int]]:
    """Where collapsing makes it shorter: the first line that is left out, and the first one after those."""
    found: list[tuple[int, int]] = []
    start, count = 0, len(lines)
    if len(set(lines)) > count - REPEATED_LINES + 1:
        return found
    while start < count:
        end = start + 1
        line = lines[start]
        while end < count and lines[end] == line:
            end += 1
        left_out = end - start - 1
        if end - start >= REPEATED_LINES and left_out * (len(line) + 1) > len(notice(left_out)) + 1:
            found.append((start + 1, end))
        start = end
    return found


def collapse(lines: list[str]) -> list[str]:
    kept: list[str] = []
    done = 0
    for start, end in runs(lines):
        kept += lines[done:start]
        kept.append(notice(end - start))
        done = end
    return kept + lines[done:]


def tidy(text: str) -> str:
    """Both, for a whole text."""
    if len(text) <= LINE_RUNES and text.count("\n") < REPEATED_LINES - 1:
        return text
    return "\n".join(collapse(cut_lines(text.split("\n"))))
