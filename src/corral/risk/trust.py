"""Where the tree may differ from what bash does. Each check was needed; the comment says for what.

tree-sitter-bash recovers from errors, skips characters bash does not skip, and reads a few constructs as plain
commands without a word. So every byte must be accounted for: the gaps between the nodes of the tree may hold only
what bash skips too, and every word is read a second time by `words.resolve`.
"""

from __future__ import annotations

import re

MAX_LENGTH = 4_000_000
MAX_HEREDOCS = 200
"""The grammar looks for the end of every open here-document at each line: quadratic above a few hundred."""

_BLANK = re.compile(r"(?:\\\n)*(?:[ \t\n](?:\\\n)*)+\Z")
_CONTINUED = re.compile(rb"(?<!\\)((?:\\\\)*)\\\n")
_USUAL_GAPS = frozenset({"", " ", "\n", "  ", "\n  ", "\n    "})
_USUAL_BLANKS = frozenset({"", " ", "  "})
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
UNREAD_NAMES = frozenset(
    {"coproc", "select", "function", "case", "for", "in", "esac", "fi", "done", "then", "do"}
)
"""Reserved words that the grammar sometimes takes for the name of a command: ``coproc N { …; }``."""
UNREAD_WORDS = frozenset({"{", "}"})
"""Arguments to the grammar, and sometimes groups to bash: ``time { …; }``."""
_FORK_BOMB = re.compile(r"([^\s(){}|&;]{1,64})\s*\(\s*\)\s*[{(]\s*\1\s*\|\s*\1\s*&")
_COMPARES = re.compile(
    r"\s-(?:eq|ne|lt|le|gt|ge)\s(?!\s*\d)|[^\d\s]\s+-(?:eq|ne|lt|le|gt|ge)\s|\s-[vR]\s+(?![A-Za-z_]\w*\s)"
)
_NAMED = re.compile(r"[A-Za-z_$]")
_HEREDOC = re.compile(r"<<(?!<)")


def unreadable(text: str) -> str | None:
    """Why this text is not even parsed."""
    if len(text) > MAX_LENGTH:
        return "longer than anything that is worth reading"
    if "<<" in text and len(_HEREDOC.findall(text)) > MAX_HEREDOCS:
        return "more here-documents than can be followed"
    return None


def textual_doubts(text: str) -> list[str]:
    """Doubts that the text alone raises, before any tree."""
    doubts = []
    if _CONTROL.search(text):
        # The grammar skips \r, \v and \f as blanks; to bash they are part of a word.
        doubts.append("control characters")
    if "`" in text:
        # Backticks inside "${x:-…}" get no node at all.
        doubts.append("backticks")
    return doubts


def join_lines(source: bytes) -> bytes:
    """Drops backslash-newline as bash does. The grammar takes it for a blank, which splits ``-r\\<newline>f``.

    Inside single quotes and here-documents it stays; there the text is left alone, and a split word is a doubt.
    """
    if b"'" in source or b"<<" in source or b"#" in source:
        return source
    return _CONTINUED.sub(rb"\1", source)


def skipped(gap: str) -> bool:
    """Whether bash skips this text between two tokens as the grammar did."""
    return gap in _USUAL_GAPS or _BLANK.match(gap) is not None


def opens_group(text: str, at: int) -> bool:
    """``{ls`` is a word to bash: a brace opens a group only before a blank."""
    return text[at] != "{" or text[at + 1 : at + 2] in (" ", "\t", "\n", "(")


def is_one_test(text: str) -> bool:
    """``[`` ends at a newline like any command; the grammar reads on to the bracket. ``[[`` may span lines."""
    return text.startswith("[[") or "\n" not in text


def calculates(text: str) -> bool:
    """Whether this arithmetic uses a variable: bash runs ``$(…)`` in a subscript that its value holds."""
    return _NAMED.search(text) is not None


def compares_numbers(text: str) -> bool:
    """Whether this test calculates, or looks at a variable by a name that is not written out."""
    return _COMPARES.search(text) is not None


def skipped_in_line(gap: str) -> bool:
    """The same inside one simple command, which a newline would end."""
    return gap in _USUAL_BLANKS or (skipped(gap) and "\n" not in gap.replace("\\\n", ""))


def is_fork_bomb(text: str) -> bool:
    return "|" in text and "&" in text and _FORK_BOMB.search(text) is not None


def is_arithmetic(text: str) -> bool:
    """Whether bash, too, takes this ``((…))`` as arithmetic: its two closing parentheses match the two opening ones.

    ``((rm -rf x) )`` and ``((rm -rf x); ls)`` start like arithmetic and are subshells.
    """
    start = text.find("((")
    if start < 0 or not text.endswith("))"):
        return False
    depth = 0
    for char in text[start + 2 : -2]:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


def heredoc_is_whole(start: str, body: str, ending: str, *, tabs_dropped: bool) -> bool:
    """Whether the document ends where bash ends it: at the first line that is exactly the delimiter."""
    delimiter = re.sub(r"[\\'\"]", "", start)
    lines = body.split("\n")
    if tabs_dropped:
        lines = [line.lstrip("\t") for line in lines]
    return ending.strip("\t") == delimiter and delimiter not in lines[:-1]
