"""What is known of a regular expression before it is used: text that every match must hold, and how much work it can
be.

Read from the tree that `re` itself parses. Where that tree is not to be had, nothing is known and the careful way is
taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

try:
    import re._constants as _op  # type: ignore[import-not-found]
    import re._parser as _parser  # type: ignore[import-not-found]
except ImportError:
    _op = _parser = None

LONGEST = 10_000
MOST_OPTIONAL = 8  # each doubles what has to be tried
MOST_COUNTED = 64
LINE_END = ord("\n")


class BadExpression(ValueError):
    """What is wrong with an expression, in one line."""


class Expression:
    """``needle``: text that must be in every match, empty if none is known. ``whole``: a text may be searched at once
    for lines to look at. ``is_quick``: no text makes it slow. ``is_literal``: the needle is all there is to it."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        if len(pattern) > LONGEST:
            raise BadExpression(f"a pattern has at most {LONGEST} characters, this one has {len(pattern)}")
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        try:
            self.compiled = re.compile(pattern, flags)
        except (re.error, RecursionError, OverflowError, MemoryError, Warning) as error:
            raise BadExpression(str(error) or type(error).__name__) from None
        self.ignores_case = bool(self.compiled.flags & re.IGNORECASE)
        self.needle, self.whole, self.is_quick, self.is_literal = "", False, False, False
        if _parser is not None:
            tree = _parser.parse(pattern, flags)
            facts = _Facts(bool(self.compiled.flags & re.DOTALL))
            facts.read(tree)
            self.whole = facts.whole
            self.is_quick = facts.optional <= MOST_OPTIONAL and not facts.repeats
            self.needle = max(filter(self._can_be_looked_for, _needles(tree)), key=len, default="")
            # A line never holds a line end.
            self.is_literal = _text(tree) == self.needle != "" and "\n" not in self.needle

    def _can_be_looked_for(self, needle: str) -> bool:
        """Without case, letters outside ASCII have too many relatives."""
        return needle.isascii() or not self.ignores_case

    def may_be_in(self, content: bytes) -> bool:
        """Whether it is worth looking at all."""
        needle = self.needle
        if not needle:
            return True
        if self.ignores_case:
            # Outside ASCII a few letters are the same as one inside.
            return not content.isascii() or needle.lower().encode() in content.lower()
        return needle.encode() in content


class _Facts:
    def __init__(self, dot_is_all: bool) -> None:
        self._dot_is_all = dot_is_all
        self.whole = True
        self.repeats = False
        self.optional = 0

    def read(self, tree: Iterable[tuple[Any, Any]], repeated: bool = False) -> None:
        for op, value in tree:
            if op in (_op.MAX_REPEAT, _op.MIN_REPEAT):
                least, most, inside = value
                if least != most or most > MOST_COUNTED or not _is_flat([inside]):
                    self.repeats |= most > 1
                    self.optional += 1
                self.read(inside, repeated or most > 1)
            elif op is _op.BRANCH:
                self.optional += len(value[1]) > 1 and not _is_flat(value[1])
                for branch in value[1]:
                    self.read(branch, repeated)
            elif op is _op.SUBPATTERN:
                self._dot_is_all |= bool(value[1] & re.DOTALL)
                self.read(value[-1], repeated)
            elif op is _op.AT:
                self.whole &= value in (_op.AT_BEGINNING, _op.AT_BEGINNING_LINE, _op.AT_END, _op.AT_BOUNDARY)
            elif op in (_op.LITERAL, _op.NOT_LITERAL, _op.IN, _op.ANY):
                # What runs on over line ends would look at the rest of the text again from every line.
                self.whole &= not (repeated and self._fits_line_end(op, value))
            else:
                # Looking around, groups that are never given up, references: only line by line, and with care.
                self.whole, self.repeats = False, True

    def _fits_line_end(self, op: Any, value: Any) -> bool:
        if op is _op.ANY:
            return self._dot_is_all
        if op is not _op.IN:
            return bool((value == LINE_END) == (op is _op.LITERAL))
        fits = any(_holds_line_end(*item) for item in value)
        negated: bool = value[0][0] is _op.NEGATE
        return fits != negated


def _holds_line_end(op: Any, value: Any) -> bool:
    if op is _op.RANGE:
        return bool(value[0] <= LINE_END <= value[1])
    if op is _op.CATEGORY:
        return value in (_op.CATEGORY_SPACE, _op.CATEGORY_NOT_WORD, _op.CATEGORY_NOT_DIGIT)
    return bool(op is _op.LITERAL and value == LINE_END)


def _is_flat(branches: Iterable[Any]) -> bool:
    return all(op in (_op.LITERAL, _op.IN, _op.ANY) for branch in branches for op, _ in branch)


def _text(tree: Iterable[tuple[Any, Any]]) -> str | None:
    """What an expression of letters alone stands for."""
    letters = [chr(value) if op is _op.LITERAL else "" for op, value in tree]
    return "".join(letters) if all(letters) else None


def _needles(tree: Iterable[tuple[Any, Any]]) -> list[str]:
    """Texts that every match holds. Letters inside a group with flags of its own do not count."""
    found, run = [], ""
    for op, value in tree:
        if op is _op.LITERAL and not 0xD800 <= value <= 0xDFFF and value != 0xFFFD:
            run += chr(value)
            continue
        found.append(run)
        run = ""
        if op is _op.SUBPATTERN and not value[1] and not value[2]:
            found += _needles(value[3])
        elif op in (_op.MAX_REPEAT, _op.MIN_REPEAT) and value[0] >= 1:
            found += _needles(value[2])
    return [*found, run]
