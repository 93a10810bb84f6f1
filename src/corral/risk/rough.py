"""A second, crude reading for lines the tree cannot be trusted on.

Quotes are dropped, everything that could separate commands does, braces and commas are blanks. It finds too many
commands and never too few, which is right for a text that is in doubt.
"""

from __future__ import annotations

import re

from corral.risk.marks import HOLE

_JOIN = re.compile(r"\\\r?\n")
_QUOTES = re.compile(r"[\"'\\]")
_BREAK = re.compile(r"[;&|()\n`]+|\$\(|<\(|>\(|(?<!\$)\{|(?<!\w)\}")
_VARIABLE = re.compile(r"\$\{[^}\s]{0,200}\}|\$\w+|\$[@*#?$!-]")
_IFS = re.compile(r"\$\{?IFS\}?")
_REDIRECT = re.compile(r"\d*(?:>>?|<>)\|?\s*(?!&)(\S+)")
_RESERVED = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "do",
        "done",
        "while",
        "until",
        "for",
        "case",
        "esac",
        "in",
        "select",
        "function",
        "time",
        "coproc",
        "!",
        "{",
        "}",
        "[[",
        "]]",
    ]
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=\S*")
MAX_WORDS = 400


def commands(text: str) -> list[tuple[list[str], bool, list[str]]]:
    """Rows of (words, whether a pipe may feed them, redirection targets)."""
    text = _IFS.sub(" ", _JOIN.sub("", text))
    text = _QUOTES.sub("", text).replace("\r", " ").replace("\v", " ").replace("\f", " ")
    found: list[tuple[list[str], bool, list[str]]] = []
    at = 0
    piped = False
    for separator in [*_BREAK.finditer(text), None]:
        segment = text[at : separator.start()] if separator else text[at:]
        _add(segment, piped, found)
        if "," in segment and at and text[at - 1] == "{":
            _add(segment.replace(",", " "), piped, found)
        if separator:
            piped = (
                "|" in separator.group() or (piped and "{" in separator.group()) or "(" in separator.group()
            )
            at = separator.end()
    return found


def _add(segment: str, piped: bool, found: list[tuple[list[str], bool, list[str]]]) -> None:
    targets = _REDIRECT.findall(segment) if ">" in segment else []
    words = _VARIABLE.sub(HOLE, _REDIRECT.sub(" ", segment)).split()[:MAX_WORDS]
    while words and (words[0] in _RESERVED or _ASSIGNMENT.fullmatch(words[0])):
        words.pop(0)
    if words or targets:
        found.append((words, piped, targets))
