"""Rows that a user adds. They raise a level for a whole family, and lower one only for an exact command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from corral.record import Record
from corral.risk.levels import DANGEROUS, SAFE, Finding, Level
from corral.risk.table import has_option
from corral.risk.words import UNKNOWN


class BadRule(ValueError):
    """A row of the user's config that makes no sense; the message names the row and what is wrong."""


class Raise(Record):
    """Whenever `verb` runs (with one of `options`, with an argument that matches `args`), the level is at least this.

    `refuse` makes it hardline: no approval and no force lifts it.
    """

    verb: str
    level: Level
    reason: str
    options: str = ""
    args: str = ""
    refuse: bool = False


class Lower(Record):
    """This command, word for word, has this level. Nothing else has."""

    words: tuple[str, ...]
    level: Level
    reason: str


class Rules(Record):
    """All rows of one user. `sudo_password`: the host has one set, so ``sudo -S`` is dangerous and not hardline."""

    raises: tuple[Raise, ...] = ()
    lowers: tuple[Lower, ...] = ()
    sudo_password: bool = False

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, object]], sudo_password: bool = False) -> Rules:
        """From config tables with the keys of `Raise`, or with ``exact`` (a whole command), ``level``, ``reason``."""
        raises: list[Raise] = []
        lowers: list[Lower] = []
        for number, row in enumerate(rows, 1):
            try:
                if "exact" in row:
                    lowers.append(_lower(row))
                else:
                    raises.append(_raise(row))
            except ValueError as wrong:
                raise BadRule(f"risk rule {number}: {wrong}") from None
        return cls(tuple(raises), tuple(lowers), sudo_password)

    def raised(self, verb: str, arguments: Sequence[str]) -> Iterator[Finding]:
        for row in self.raises:
            if row.verb != verb or (row.options and not has_option(arguments, row.options)):
                continue
            if row.args and not any(re.fullmatch(row.args, word) for word in arguments):
                continue
            yield Finding(DANGEROUS if row.refuse else row.level, row.reason, (), row.refuse)

    def lowered(self, name: str, arguments: Sequence[str]) -> Finding | None:
        for row in self.lowers:
            if row.words[0] == name and row.words[1:] == tuple(arguments):
                return Finding(row.level, row.reason)
        return None


def _text(row: Mapping[str, object], key: str, default: str | None = None) -> str:
    value = row.get(key, default)
    if not isinstance(value, str) or (default is None and not value):
        raise ValueError(f"{key} must be a text")
    return value


def _known(row: Mapping[str, object], keys: frozenset[str]) -> None:
    if unknown := sorted(set(row) - keys):
        raise ValueError(f"{unknown[0]!r} is no key; keys are {', '.join(sorted(keys))}")


def _raise(row: Mapping[str, object]) -> Raise:
    _known(row, frozenset({"verb", "level", "reason", "options", "args", "refuse"}))
    level = Level.named(_text(row, "level", "dangerous"))
    refuse = row.get("refuse", False)
    if not isinstance(refuse, bool):
        raise ValueError("refuse must be true or false")
    if level is SAFE:
        raise ValueError('a rule for a verb can only raise; lower with exact = "the whole command"')
    args = _text(row, "args", "")
    try:
        re.compile(args)
    except re.error as wrong:
        raise ValueError(f"args is no pattern: {wrong}") from None
    return Raise(_text(row, "verb"), level, _text(row, "reason"), _text(row, "options", ""), args, refuse)


def _lower(row: Mapping[str, object]) -> Lower:
    from corral.risk.parse import parse

    _known(row, frozenset({"exact", "level", "reason"}))
    script = parse(_text(row, "exact"))
    commands = script.commands
    plain = (
        len(commands) == 1
        and not script.doubts
        and not commands[0].redirections
        and not commands[0].assignments
    )
    if not plain or not commands[0].words or any(UNKNOWN.search(word) for word in commands[0].words):
        raise ValueError("exact must be one plain command, without variables, patterns or redirections")
    return Lower(
        tuple(commands[0].words), Level.named(_text(row, "level")), _text(row, "reason", "allowed by you")
    )
