"""Rows of the rule tables, and how a row meets a command. Rules are rows; this file is the only code that reads them.

Option lists are strings of names, blank-separated: ``-o`` also matches inside a cluster (``-ro``) and with a value
attached (``-ofile``), ``--output`` also matches abbreviated and with ``=value``. `sub` holds paths of sub-commands:
commas between paths, ``|`` between alternatives of a word, ``*`` for any text. In the `only` list of a `Base` row,
``name=`` marks an option that takes a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate

from corral.record import Record
from corral.risk.levels import Finding, Level
from corral.risk.marks import HOLE
from corral.risk.words import may_be_option

Check = Callable[["Call"], Iterable[Finding]]


class Base(Record):
    """What a program does. The first matching row of its verb (and sub-command) wins.

    `needs`: one of these options must be present. `only`: no option but these may be present, so that a row that
    lowers a level never rests on an option nobody looked at. `most`: at most that many operands.
    """

    verb: str
    level: Level
    reason: str
    sub: str = ""
    needs: str = ""
    only: str = ""
    most: int = -1


class Sharp(Record):
    """A sharp edge: with one of `options`, and with a word that matches `args`, the level is at least this."""

    verb: str
    level: Level
    reason: str
    sub: str = ""
    options: str = ""
    args: str = ""
    forms: tuple[str, ...] = ()
    hardline: bool = False


class Look(Record):
    """A sharp edge that needs code: a script, a statement or a target inside an argument."""

    verb: str
    check: Check
    sub: str = ""


class Globals(Record):
    """Options that may stand before a program's sub-command; ``name=`` takes a value. `depth`: words of its path."""

    verb: str
    options: str = ""
    depth: int = 1


class Call:
    """A command as rows see it: verb, sub-command path, all words after the verb, and what feeds it."""

    __slots__ = ("fed", "rest", "runs", "shells", "sub", "uncertain", "verb", "words")

    def __init__(self, verb: str, words: Sequence[str], fed: str) -> None:
        self.verb = verb
        self.words = words
        self.fed = fed
        self.sub: tuple[str, ...] = ()
        self.rest: Sequence[str] = words
        self.uncertain = False
        self.runs: list[list[str]] = []
        """Commands that this one runs, found by a `Look`."""
        self.shells: list[str] = []
        """Shell text that this one runs."""

    def operands(self) -> list[str]:
        """Words that are not options; after ``--`` all of them."""
        found: list[str] = []
        for at, word in enumerate(self.rest):
            if word == "--":
                found.extend(self.rest[at + 1 :])
                break
            if not word.startswith("-") or word == "-":
                found.append(word)
        return found

    def values(self, names: str) -> list[str]:
        """Values given to these options, attached or not."""
        short, long, exact = _option_names(names)
        found: list[str] = []
        for at, word in enumerate(self.words):
            following = self.words[at + 1] if at + 1 < len(self.words) else ""
            if word.startswith("--"):
                name, equals, value = word.partition("=")
                if any(_abbreviates(name, option) for option in long):
                    found.append(value if equals else following)
            elif word.startswith("-") and len(word) > 1:
                name, equals, value = word.partition("=")
                if name in exact:
                    found.append(value if equals else following)
                    continue
                for place, letter in enumerate(word[1:], 1):
                    if letter in short:
                        found.append(word[place + 1 :] or following)
                        break
        return found

    def has(self, names: str) -> bool:
        return bool(has_option(self.words, names))


_names: dict[str, tuple[frozenset[str], tuple[str, ...], frozenset[str]]] = {}


def _option_names(names: str) -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """Short letters, long names, and single-dash words such as ``-delete`` that only match whole."""
    known = _names.get(names)
    if known is None:
        parts = names.split()
        known = (
            frozenset(part[1] for part in parts if len(part) == 2 and part[0] == "-"),
            tuple(part for part in parts if part.startswith("--")),
            frozenset(part for part in parts if len(part) > 2 and not part.startswith("--")),
        )
        _names[names] = known
    return known


def _abbreviates(name: str, option: str) -> bool:
    return name == option or (len(name) > 3 and option.startswith(name))


def has_option(words: Sequence[str], names: str) -> str:
    """The first of these words that is, or may be, one of these options."""
    short, long, exact = _option_names(names)
    for word in words:
        if not word or (word[0] != "-" and word not in exact):
            continue
        if word == "--":
            break
        if word.startswith("--"):
            name = word.partition("=")[0]
            if any(_abbreviates(name, option) for option in long):
                return word
        elif (
            word in exact
            or word.partition("=")[0] in exact
            or (short and len(word) > 1 and any(letter in short for letter in word[1:]))
        ):
            return word
    return ""


class Grammar:
    """An option list read strictly: which words are options, which are their values, which are operands."""

    def __init__(self, names: str) -> None:
        self.flags = frozenset(part for part in names.split() if not part.endswith("="))
        self.valued = frozenset(part[:-1] for part in names.split() if part.endswith("="))
        self.letters = frozenset(part[1] for part in self.flags if len(part) == 2)
        self.taking = frozenset(part[1] for part in self.valued if len(part) == 2)

    def width(self, word: str) -> int:
        """How many words this option takes (1 or 2); 0 if it is not in the list."""
        if word in self.flags:
            return 1
        if word in self.valued:
            return 2
        if word.startswith("--"):
            return (
                1
                if word.partition("=")[0] in self.valued or word.partition("=")[0] + "=" in self.flags
                else 0
            )
        if word.partition("=")[0] in self.valued and "=" in word:
            return 1
        for at, letter in enumerate(word[1:], 1):
            if letter in self.taking:
                return 1 if at + 1 < len(word) else 2
            if letter not in self.letters and not (letter.isdigit() and "#" in self.letters):
                return 0
        return 1

    def operands(self, words: Sequence[str]) -> list[str] | None:
        """The operands, or None when a word may be an option that is not in the list."""
        found: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            if word == "--":
                return found + list(words[at + 1 :])
            if may_be_option(word):
                return None
            if len(word) > 1 and word[0] == "-":
                width = self.width(word)
                if not width:
                    return None
                at += width
            else:
                found.append(word)
                at += 1
        return found


_grammars: dict[str, Grammar] = {}


def grammar(names: str) -> Grammar:
    known = _grammars.get(names)
    if known is None:
        known = _grammars[names] = Grammar(names)
    return known


def base_fits(row: Base, call: Call, path: int) -> bool:
    """Whether the row's options and operands fit; `path` words of the call are its sub-command."""
    if row.needs and not has_option(call.rest, row.needs):
        return False
    if row.only or row.most >= 0:
        operands = grammar(row.only).operands(call.rest)
        if operands is None:
            return False
        return row.most < 0 or len(operands) - max(0, path - 1) <= row.most
    return True


def sharp_fits(row: Sharp, call: Call) -> bool:
    words = call.rest if row.sub else call.words
    if row.options and not has_option(words, row.options):
        return False
    if row.args:
        pattern = re.compile(row.args)
        return any(pattern.fullmatch(word) for word in words)
    return True


SubPattern = tuple[str | frozenset[str] | re.Pattern[str], ...]


def sub_patterns(sub: str) -> list[SubPattern]:
    """The paths of a `sub` field: commas between paths, ``|`` between alternatives of one word, ``*`` for any text."""
    return [tuple(_sub_word(word) for word in path.split()) for path in sub.split(",")]


def _sub_word(word: str) -> str | frozenset[str] | re.Pattern[str]:
    if "*" in word:
        return re.compile("|".join(translate(part) for part in word.split("|")))
    return frozenset(word.split("|")) if "|" in word else word


def word_fits(want: str | frozenset[str] | re.Pattern[str], have: str) -> bool:
    if isinstance(want, str):
        return want == have
    return have in want if isinstance(want, frozenset) else want.match(have) is not None


def sub_fits(pattern: SubPattern, path: tuple[str, ...]) -> bool:
    if len(pattern) > len(path):
        return False
    return all(word_fits(want, have) for want, have in zip(pattern, path, strict=False))


def find_sub(call: Call, options: Globals) -> None:
    """Fills in the sub-command path of a call, skipping the options that may stand before it."""
    words, rules, at = call.words, grammar(options.options), 0
    path: list[str] = []
    rest_from = 0
    while at < len(words) and len(path) < options.depth:
        word = words[at]
        if word == "--":
            break
        if len(word) > 1 and word[0] == "-":
            width = rules.width(word)
            if not width:
                call.uncertain = call.uncertain or not path
                width = 1
            at += width
            continue
        if may_be_option(word):
            call.uncertain = True
            path.append(HOLE)
        else:
            path.append(word)
        at += 1
        if len(path) == 1:
            rest_from = at
    call.sub = tuple(path)
    call.rest = words[rest_from:] if path else words
