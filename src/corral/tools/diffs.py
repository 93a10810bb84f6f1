"""Diffs as the tools show them: ``- text``, ``+ text``, and ``  text`` around."""

from __future__ import annotations

from corral.tools.limits import DIFF_LINES
from corral.tools.text import cut_line

CONTEXT = 3
COMPARED_LINES = 4_000  # more than that are shown as replaced


def lines_of(content: bytes) -> list[str]:
    """Without their ends; a carriage return stays."""
    lines = content.decode("utf-8", "replace").split("\n")
    return lines if lines[-1] else lines[:-1]


class Difference:
    """``first`` and ``last``: lines of the new text between which something changed, from 1; 0 where nothing did."""

    def __init__(self, old: list[str], new: list[str], context: int = CONTEXT) -> None:
        head = _same_at_start(old, new)
        tail = _same_at_start(old[head:][::-1], new[head:][::-1])
        self.same = head == len(old) == len(new)
        self.first = 0 if self.same else head + 1
        self.last = 0 if self.same else max(len(new) - tail, min(head + 1, len(new)))
        self._old, self._new, self._context = old, new, context
        self._changes = [] if self.same else self._opcodes(head, tail)

    def _opcodes(self, head: int, tail: int) -> list[tuple[int, int, int, int]]:
        old, new = self._old[head : len(self._old) - tail], self._new[head : len(self._new) - tail]
        if len(old) + len(new) > COMPARED_LINES or set(old).isdisjoint(new):
            return [(head, head + len(old), head, head + len(new))]
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, old, new, autojunk=False)
        changes = (code[1:] for code in matcher.get_opcodes() if code[0] != "equal")
        return [(i + head, j + head, k + head, m + head) for i, j, k, m in changes]

    def text(self) -> str:
        """At most some hundred lines of it; a line of the old text is counted by ``@@``."""
        shown: list[str] = []
        done = 0  # of the old text
        for number, (i, j, k, m) in enumerate(self._changes):
            start = max(done, i - self._context)
            if start > done or number == 0:
                shown.append(f"@@ line {start + 1} @@")
            shown += [f"  {line}" for line in self._old[start:i]]
            shown += [f"- {line}" for line in self._old[i:j]]
            shown += [f"+ {line}" for line in self._new[k:m]]
            following = self._changes[number + 1][0] if number + 1 < len(self._changes) else len(self._old)
            done = min(j + self._context, following)
            shown += [f"  {line}" for line in self._old[j:done]]
            if len(shown) > DIFF_LINES:
                break
        left = len(shown) - DIFF_LINES
        cut = [cut_line(line) for line in shown[:DIFF_LINES]]
        return "\n".join([*cut, f"[... {left} more lines of the diff ...]"] if left > 0 else cut)


def _same_at_start(old: list[str], new: list[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count
