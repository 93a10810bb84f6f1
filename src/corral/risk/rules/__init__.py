"""The rule tables, one module a family, and their index. Adding a rule is adding a row."""

from __future__ import annotations

import re

from corral.risk.levels import Finding
from corral.risk.rules import (
    clouds,
    containers,
    coreutils,
    databases,
    forges,
    git,
    languages,
    network,
    packages,
    readers,
    shells,
    system,
)
from corral.risk.table import Base, Globals, Look, Sharp, SubPattern, sub_patterns, word_fits

Row = Base | Sharp | Look | Globals
FAMILIES = (
    git,
    forges,
    containers,
    clouds,
    packages,
    databases,
    languages,
    shells,
    system,
    network,
    coreutils,
    readers,
)


def _names(word: str | frozenset[str] | re.Pattern[str], sub: str) -> bool:
    return not isinstance(word, re.Pattern) and word_fits(word, sub)


class Selection:
    """The rows of a verb that can match one sub-command, in table order, each with its finding ready."""

    __slots__ = ("bases", "looks", "sharps")

    def __init__(self) -> None:
        self.bases: list[tuple[SubPattern, Base, Finding]] = []
        self.sharps: list[tuple[SubPattern, Sharp, Finding]] = []
        self.looks: list[tuple[SubPattern, Look]] = []


class Verb:
    """All rows of one verb."""

    __slots__ = ("_selections", "options", "rows")

    def __init__(self) -> None:
        self.rows: list[tuple[SubPattern, Base | Sharp | Look]] = []
        self.options: Globals | None = None
        self._selections: dict[str, Selection] = {}

    def select(self, sub: str) -> Selection:
        known = self._selections.get(sub)
        if known is None:
            if not any(pattern and _names(pattern[0], sub) for pattern, _ in self.rows):
                sub = ""
            known = self._selections.setdefault(sub, self._selected(sub))
        return known

    def _selected(self, sub: str) -> Selection:
        chosen = Selection()
        for pattern, row in self.rows:
            if pattern and not isinstance(pattern[0], re.Pattern) and not _names(pattern[0], sub):
                continue
            if isinstance(row, Base):
                chosen.bases.append((pattern, row, Finding(row.level, row.reason)))
            elif isinstance(row, Sharp):
                chosen.sharps.append((pattern, row, Finding(row.level, row.reason, row.forms, row.hardline)))
            else:
                chosen.looks.append((pattern, row))
        return chosen


def index(rows: tuple[Row, ...]) -> dict[str, Verb]:
    verbs: dict[str, Verb] = {}
    for row in rows:
        for name in row.verb.split():
            verb = verbs.setdefault(name, Verb())
            if isinstance(row, Globals):
                verb.options = row
                continue
            verb.rows.extend((pattern, row) for pattern in sub_patterns(row.sub))
            if verb.options is None and row.sub:
                verb.options = Globals(name, "", depth=2)
    return verbs


ALL: tuple[Row, ...] = tuple(row for family in FAMILIES for row in family.TABLE)
VERBS = index(ALL)
