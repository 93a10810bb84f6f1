"""Brace expansion: ``a{b,c}`` becomes two words."""

from __future__ import annotations

from itertools import pairwise

from corral.risk.marks import CLOSE, COMMA, HOLE, OPEN, Doubt

MAX_BRACE_WORDS = 64


def expand(marked: str) -> list[str]:
    """``a{b,c}`` to ``ab ac``. A sequence (``{1..3}``) or too many words become one unknown word."""
    if marked.count(OPEN) > MAX_BRACE_WORDS:
        raise Doubt("too many braces to expand")
    words = _alternatives(marked)
    if len(words) > MAX_BRACE_WORDS:
        return [marked.partition(OPEN)[0] + HOLE]
    return [word.replace(OPEN, "{").replace(COMMA, ",").replace(CLOSE, "}") for word in words]


def _alternatives(word: str) -> list[str]:
    """Expands the first brace that closes; as deep as braces are nested, which is bounded by their number."""
    start = word.find(OPEN)
    if start < 0:
        return [word]
    end, commas = _matching(word, start)
    if end < 0:
        return [word[: start + 1] + rest for rest in _alternatives(word[start + 1 :])]
    before, inside, behind = word[:start], word[start + 1 : end], _alternatives(word[end + 1 :])
    if commas:
        edges = [start, *commas, end]
        pieces = [word[left + 1 : right] for left, right in pairwise(edges)]
        middle = [one for piece in pieces for one in _alternatives(piece)]
    elif ".." in inside:
        middle = [HOLE]
    else:
        middle = ["{" + one + "}" for one in _alternatives(inside)]
    if len(middle) * len(behind) > MAX_BRACE_WORDS:
        return [before + HOLE]
    return [before + one + rest for one in middle for rest in behind]


def _matching(word: str, start: int) -> tuple[int, list[int]]:
    """Where this brace closes (-1 if nowhere), and the commas that belong to it."""
    depth = 0
    commas: list[int] = []
    for at in range(start, len(word)):
        char = word[at]
        if char == OPEN:
            depth += 1
        elif char == CLOSE:
            depth -= 1
            if not depth:
                return at, commas
        elif char == COMMA and depth == 1:
            commas.append(at)
    return -1, []
