"""Folded text: what matching looks at instead of a file's own text, with the way back to every place in it.

Folding only takes characters away or puts one for one, so a list of the places where some were taken away is enough.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# What people and programs write for the same thing.
ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys(
            "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "
        ),
        **dict.fromkeys("\u202f\u205f\u3000", " "),
    }
)
_RETURN = re.compile(r"\r(?=\n)")
_TRAILING = re.compile(r"[ \t\r]+(?=\n|\Z)")


class Folded:
    """``text``: the folded one. ``start`` and ``end`` lead from a place in it to one in the original."""

    __slots__ = ("_cuts", "_original", "_taken", "text")

    def __init__(self, original: str, text: str, taken: Iterable[tuple[int, int]]) -> None:
        """``taken``: spans of the original that are not in the text, in order. ``text`` is as long as the original;
        they are taken out here."""
        self._original = original
        self._cuts: list[int] = []
        self._taken = [0]
        pieces, done, total = [], 0, 0
        for start, end in taken:
            pieces.append(text[done:start])
            self._cuts.append(start - total)
            total += end - start
            self._taken.append(total)
            done = end
        self.text = text if not pieces else "".join([*pieces, text[done:]])

    def start(self, place: int) -> int:
        """Where the character at this place stands; of a line end, where all of it begins."""
        found = place + self._taken[bisect_right(self._cuts, place)]
        if found and self._original.startswith("\r\n", found - 1):
            return found - 1
        return found

    def end(self, place: int) -> int:
        """Right behind the character before this place."""
        return place + self._taken[bisect_left(self._cuts, place)]


def fold_line_ends(text: str) -> Folded:
    """Every line ends with one character."""
    taken = (match.span() for match in _RETURN.finditer(text)) if "\r\n" in text else ()
    return Folded(text, text, taken)


def fold_alike(text: str) -> Folded:
    """And blanks at the end of a line, curly quotes, long dashes and odd blanks make no difference."""
    alike = text.translate(ALIKE)
    return Folded(text, alike, (match.span() for match in _TRAILING.finditer(alike)))
