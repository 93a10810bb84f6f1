"""Which lines differ: hunks between two texts, in bounded time whatever the texts are.

Lines that occur once on both sides are matched first and in order; between them a plain search while it is small, and
where it is not, everything is taken to differ.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 3
SMALL = 200_000  # product of the two lengths that the plain search is given

# Lines of a text, each with its end.
Lines = Sequence[bytes]
# Both begin, and how many lines are equal from there.
Block = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines ``old_at`` on are replaced; ``rows`` are marked b" ", b"-" or b"+"."""

    old_at: int
    old_count: int
    new_at: int
    new_count: int
    rows: tuple[tuple[bytes, bytes], ...]

    def header(self) -> str:
        return f"@@ -{_range(self.old_at, self.old_count)} +{_range(self.new_at, self.new_count)} @@"


def _range(at: int, count: int) -> str:
    return f"{at + 1 if count else at}" + ("" if count == 1 else f",{count}")


def split_lines(content: bytes) -> list[bytes]:
    """By line feeds only: carriage returns are content."""
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def hunks(old: Lines, new: Lines, context: int = CONTEXT) -> list[Hunk]:
    return [_hunk(old, new, group) for group in _groups(list(_edits(old, new)), context, len(old))]


# An edit: old lines a..b become new lines c..d.
Edit = tuple[int, int, int, int]


def _edits(old: Lines, new: Lines) -> Iterator[Edit]:
    a = c = 0
    for start, other, count in [*_blocks(old, new), (len(old), len(new), 0)]:
        if start > a or other > c:
            yield a, start, c, other
        a, c = start + count, other + count


def _groups(edits: list[Edit], context: int, length: int) -> Iterator[list[Edit]]:
    group: list[Edit] = []
    for edit in edits:
        if group and edit[0] - group[-1][1] > 2 * context:
            yield _with_context(group, context, length)
            group = []
        group.append(edit)
    if group:
        yield _with_context(group, context, length)


def _with_context(group: list[Edit], context: int, length: int) -> list[Edit]:
    """The edits between two empty ones that mark where the hunk begins and ends."""
    first, last = group[0], group[-1]
    before = min(context, first[0])
    after = min(context, length - last[1])
    head = (first[0] - before, first[0] - before, first[2] - before, first[2] - before)
    tail = (last[1] + after, last[1] + after, last[3] + after, last[3] + after)
    return [head, *group, tail]


def _hunk(old: Lines, new: Lines, group: list[Edit]) -> Hunk:
    rows: list[tuple[bytes, bytes]] = []
    at = group[0][0]
    for a, b, c, d in group:
        rows += [(b" ", line) for line in old[at:a]]
        rows += [(b"-", line) for line in old[a:b]]
        rows += [(b"+", line) for line in new[c:d]]
        at = b
    first, last = group[0], group[-1]
    return Hunk(first[0], last[1] - first[0], first[2], last[3] - first[2], tuple(rows))


# ---- equal blocks ----


def _blocks(old: Lines, new: Lines) -> list[Block]:
    numbers: dict[bytes, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    found: list[Block] = []
    ahead = [(0, len(a), 0, len(b))]
    while ahead:
        low, high, other, end = ahead.pop()
        start = low
        while low < high and other < end and a[low] == b[other]:
            low, other = low + 1, other + 1
        if low > start:
            found.append((start, other - (low - start), low - start))
        tail = 0
        while low < high and other < end and a[high - 1] == b[end - 1]:
            high, end, tail = high - 1, end - 1, tail + 1
        if tail:
            found.append((high, end, tail))
        if low == high or other == end:
            continue
        anchors = _anchors(a, b, low, high, other, end)
        if anchors:
            for i, j in [*anchors, (high, end)]:
                ahead.append((low, i, other, j))
                low, other = i, j
            # The ranges begin with their anchor but for the first, so each is shorter than what it came from.
        elif (high - low) * (end - other) <= SMALL:
            matcher = SequenceMatcher(None, a[low:high], b[other:end], autojunk=False)
            found += [(low + i, other + j, n) for i, j, n in matcher.get_matching_blocks() if n]
    return sorted(found)


def _anchors(a: list[int], b: list[int], low: int, high: int, other: int, end: int) -> list[tuple[int, int]]:
    """Lines that occur once on each side, the longest run of them that is in order on both."""
    mine, theirs = _once(a, low, high), _once(b, other, end)
    pairs = sorted((i, theirs[line]) for line, i in mine.items() if line in theirs)
    tops: list[int] = []
    best: list[int] = []
    behind: list[int] = [-1] * len(pairs)
    for n, (_, j) in enumerate(pairs):
        at = bisect_left(tops, j)
        behind[n] = best[at - 1] if at else -1
        if at == len(tops):
            tops.append(j)
            best.append(n)
        else:
            tops[at], best[at] = j, n
    chain: list[tuple[int, int]] = []
    n = best[-1] if best else -1
    while n >= 0:
        chain.append(pairs[n])
        n = behind[n]
    return chain[::-1]


def _once(lines: list[int], start: int, stop: int) -> dict[int, int]:
    seen: dict[int, int] = {}
    twice: set[int] = set()
    for at in range(start, stop):
        if lines[at] in seen:
            twice.add(lines[at])
        seen[lines[at]] = at
    return {line: at for line, at in seen.items() if line not in twice}


def patched(old: Lines, chosen: Sequence[Hunk]) -> bytes:
    """The old text with these hunks, and only these, applied."""
    out: list[bytes] = []
    at = 0
    for hunk in sorted(chosen, key=lambda hunk: hunk.old_at):
        out += old[at : hunk.old_at]
        out += [line for mark, line in hunk.rows if mark != b"-"]
        at = hunk.old_at + hunk.old_count
    return b"".join([*out, *old[at:]])


def split_hunk(hunk: Hunk) -> list[Hunk]:
    """Into the smallest ones: parted wherever lines between two changes stay."""
    parts: list[Hunk] = []
    rows: list[tuple[bytes, bytes]] = []
    old_at, new_at = hunk.old_at, hunk.new_at
    old_count = new_count = 0
    changed = False

    def flush() -> None:
        nonlocal rows, old_at, new_at, old_count, new_count, changed
        if changed:
            parts.append(Hunk(old_at, old_count, new_at, new_count, tuple(rows)))
        old_at, new_at = old_at + old_count, new_at + new_count
        rows, old_count, new_count, changed = [], 0, 0, False

    for mark, line in hunk.rows:
        if mark == b" " and changed:
            flush()
        rows.append((mark, line))
        old_count += mark != b"+"
        new_count += mark != b"-"
        changed = changed or mark != b" "
    flush()
    return parts
