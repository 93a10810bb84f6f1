"""Unwraps programs that run another program, by the grammars in `corral.risk.rules.wrapping`.

Getting a grammar wrong must not hide the inner command: after an option that is not in the list, every way to read
on is tried and the highest level counts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from corral.risk import places
from corral.risk.levels import DANGEROUS, SAFE, Finding
from corral.risk.marks import HOLE, SHUT
from corral.risk.rules.wrapping import ARGS, FIRST, NONE, PARALLEL, TEXT, WRAPPERS, Wrapper
from corral.risk.table import Call, Grammar, grammar
from corral.risk.words import may_be_option

_BY_VERB: dict[str, list[Wrapper]] = {}
for _row in WRAPPERS:
    for _verb in _row.verb.split():
        _BY_VERB.setdefault(_verb, []).append(_row)

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
MAX_READINGS = 4


class Inside:
    """What a wrapper holds: inner commands, inner shell texts, assignments, findings of its own."""

    __slots__ = ("assignments", "commands", "findings", "known", "texts")

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.texts: list[str] = []
        self.assignments: list[tuple[str, str]] = []
        self.findings: list[Finding] = []
        self.known = True


def wrapper(verb: str, words: Sequence[str]) -> tuple[Wrapper, list[str]] | None:
    """The row for this verb and sub-command, and the words behind them."""
    for row in _BY_VERB.get(verb, ()):
        if not row.sub:
            return row, list(words)
        path = row.sub.split()
        at = _sub_at(words, path)
        if at:
            return row, list(words[at:])
    return None


def _sub_at(words: Sequence[str], path: list[str]) -> int:
    """Where the words behind this sub-command start; options in between may have one value. 0: not this one."""
    at = 0
    for name in path:
        while (
            at < len(words)
            and words[at] != name
            and (words[at].startswith("-") or (at and words[at - 1].startswith("-")))
        ):
            at += 1
        if at >= len(words) or words[at] != name:
            return 0
        at += 1
    return at


def look_inside(row: Wrapper, verb: str, words: list[str], *, sudo_password: bool = False) -> Inside:
    inside = Inside()
    if row.lookup and words and words[0] in row.lookup.split():
        inside.findings.append(Finding(SAFE, "only looks a name up"))
        return inside
    inside.findings.append(Finding(row.level, row.reason, row.forms))
    if verb == "sudo" and not sudo_password and grammar_has(words, grammar(row.options), "-S", "--stdin"):
        inside.findings.append(
            Finding(DANGEROUS, "gives sudo a password on standard input", (), hardline=True)
        )
    if row.writes:
        for path in Call(verb, words[: _starts(row, words, Inside())[0]], "").values(row.writes):
            inside.findings.append(places.target(path) or Finding(SAFE, row.reason))
    if verb == "env":
        words = _split_strings(words)
    starts = _starts(row, words, inside)
    for start in starts:
        rest = words[start:]
        if row.rest == ARGS:
            for mark in ("{}", *Call(verb, words[:start], "").values("-I -J --replace")):
                rest = [word.replace(mark, SHUT) for word in rest] if mark else rest
        _read_rest(row, verb, rest, inside)
    if not inside.commands and not inside.texts and row.rest != NONE:
        inside.findings.append(Finding(row.alone, f"{verb} without a command"))
    return inside


def grammar_has(words: list[str], rules: Grammar, short: str, long: str) -> bool:
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        word = words[at]
        if word == long or (not word.startswith("--") and short[1] in word[1:] and rules.width(word)):
            return True
        at += rules.width(word) or 1
    return False


def _starts(row: Wrapper, words: list[str], inside: Inside) -> list[int]:
    """Where the inner command may start. More than one place when an option is not in the grammar."""
    rules = grammar(row.options)
    at = skipped = 0
    found: list[int] = []
    while at < len(words):
        word = words[at]
        if word == "--" and skipped == 0:
            at += 1
            at += row.skip if row.skip else 0
            break
        if row.text_option and (text := _text_option(row, words, at)) is not None:
            inside.texts.append(text)
            return []
        if len(word) > 1 and word[0] == "-" and skipped == 0:
            width = rules.width(word)
            if not width:
                inside.known = False
                if len(found) < MAX_READINGS:
                    found.append(at + 2)
                width = 1
            at += width
        elif row.assignments and _ASSIGNMENT.fullmatch(word):
            name, _, value = word.partition("=")
            inside.assignments.append((name, value))
            at += 1
        elif skipped < row.skip:
            skipped += 1
            at += 1
        elif word == "--":
            at += 1
            break
        else:
            break
    return [at, *(start for start in found if start < len(words) and start != at)]


def _text_option(row: Wrapper, words: list[str], at: int) -> str | None:
    word = words[at]
    for option in row.text_option.split():
        if word == option or (
            len(option) == 2 and word[:1] == "-" and word[:2] != "--" and word.endswith(option[1])
        ):
            return words[at + 1] if at + 1 < len(words) else HOLE
        if option.startswith("--") and word.startswith(option + "="):
            return word.partition("=")[2]
        if len(option) == 2 and word.startswith(option):
            return word[2:]
    return None


def _read_rest(row: Wrapper, verb: str, rest: list[str], inside: Inside) -> None:
    if not rest:
        return
    if row.rest == TEXT:
        inside.texts.append(" ".join(rest))
    elif row.rest == ARGS:
        inside.commands.append([*rest, HOLE])
    elif row.rest == PARALLEL:
        _parallel(rest, inside)
    elif row.rest == FIRST:
        if rest[0] in ("-", "") or may_be_option(rest[0]):
            inside.texts.append(":" if rest[0] in ("-", "") else rest[0])
        else:
            inside.texts.append(rest[0])
    elif row.rest != NONE:
        if verb == "coproc" and len(rest) > 1 and rest[1] in ("{", "("):
            rest = rest[1:]
        while rest and rest[0] in ("{", "(", "!"):
            rest = rest[1:]
        if rest:
            inside.commands.append(rest)


def _parallel(rest: list[str], inside: Inside) -> None:
    marks = [at for at, word in enumerate(rest) if word in (":::", "::::", ":::+", "::::+")]
    head = rest[: marks[0]] if marks else rest
    if head:
        text = " ".join(head)
        inside.commands.append([word.replace("{}", SHUT) for word in text.split()])
        inside.texts.append(text.replace("{}", "x").replace("{.}", "x").replace("{/}", "x"))
    elif marks:
        inside.texts.extend(word for word in rest[marks[0] + 1 :] if word not in (":::", "::::"))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _split_strings(words: list[str]) -> list[str]:
    """``env -S 'a b' c`` is ``env a b c``; also ``-vS`` and ``--split-string=``."""
    for at, word in enumerate(words):
        if word in ("-S", "--split-string") or (
            word[:1] == "-" and word[:2] != "--" and word.endswith("S") and len(word) > 1
        ):
            following = _split(words[at + 1]) if at + 1 < len(words) else []
            return words[:at] + following + words[at + 2 :]
        if word.startswith("--split-string="):
            return words[:at] + _split(word.partition("=")[2]) + words[at + 1 :]
        if word.startswith("-S"):
            return words[:at] + _split(word[2:]) + words[at + 1 :]
        if not word.startswith("-") and not _ASSIGNMENT.fullmatch(word):
            break
    return words
