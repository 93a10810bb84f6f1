"""Rows that a user adds. They raise a level for a whole family, and set one for an exact command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from corral.approval import RiskRow
from corral.commands import plain_words
from corral.errors import PolicyError
from corral.record import Record
from corral.risk.levels import CAUTION, DANGEROUS, Finding, Level
from corral.risk.table import has_option
from corral.risk.words import UNKNOWN, may_be_option
from corral.variables import name_matches

LONGEST = 4096
"""Of an argument that is compared with a pattern; a longer one may be anything."""


class BadRule(PolicyError):
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


class Exact(Record):
    """The whole line that has these words has this level. Inside another line it can only raise."""

    words: tuple[str, ...]
    level: Level
    reason: str


class Rules(Record):
    """All rows of one user. `sudo_password`: the host has one set, so ``sudo -S`` is dangerous and not hardline."""

    raises: tuple[Raise, ...] = ()
    exacts: tuple[Exact, ...] = ()
    sudo_password: bool = False

    @classmethod
    def from_rows(cls, rows: Sequence[RiskRow | Mapping[str, object]], sudo_password: bool = False) -> Rules:
        """From the rows of an `Approval`, or from tables with the same keys."""
        checked: list[RiskRow] = []
        for number, row in enumerate(rows, 1):
            try:
                checked.append(row if isinstance(row, RiskRow) else RiskRow.from_dict(dict(row)))
            except PolicyError as wrong:
                raise BadRule(f"risk rule {number}: {wrong}", rule=wrong.rule) from None
        return cls(
            tuple(_raise(row) for row in checked if row.verb),
            tuple(_exact(row) for row in checked if row.exact),
            sudo_password,
        )

    def raised(self, name: str, verb: str, arguments: Sequence[str]) -> Iterator[Finding]:
        """What the rows say of one simple command, wherever it stands. `name`: as it is written."""
        for row in self.raises:
            if row.verb == verb:
                yield from _raised(row, arguments)
        for exact in self.exacts:
            if exact.words[0] == name and exact.words[1:] == tuple(arguments):
                yield Finding(exact.level, exact.reason)

    def level_of(self, line: str) -> Finding | None:
        """The level that a row gives to exactly this line."""
        words = plain_words(line) if self.exacts else None
        if words is None:
            return None
        latin = tuple(map(as_parsed, words))
        return next((Finding(row.level, row.reason) for row in self.exacts if row.words == latin), None)


@lru_cache(maxsize=32)
def rules_of(rows: tuple[RiskRow, ...]) -> Rules:
    """The rules of an `Approval`, made once."""
    return Rules.from_rows(rows)


def _raised(row: Raise, arguments: Sequence[str]) -> Iterator[Finding]:
    sure = True
    if row.options and not has_option(arguments, row.options):
        sure = False
        if not any(may_be_option(word) for word in arguments):
            return
    if row.args and not any(len(word) <= LONGEST and name_matches(row.args, word) for word in arguments):
        sure = False
        if not any(UNKNOWN.search(word) or len(word) > LONGEST for word in arguments):
            return
    if sure:
        yield Finding(row.level, row.reason, (), row.refuse)
    else:
        yield Finding(CAUTION, f"an argument may be what a rule of yours is about: {row.reason}")


def as_parsed(text: str) -> str:
    """As the parser hands words over, one character a byte."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


def _raise(row: RiskRow) -> Raise:
    level = DANGEROUS if row.refuse else Level.named(row.level)
    verb, options, args = map(as_parsed, (row.verb, row.options, row.args))
    return Raise(verb, level, row.reason, options, args, row.refuse)


def _exact(row: RiskRow) -> Exact:
    words = plain_words(row.exact) or ()
    return Exact(tuple(map(as_parsed, words)), Level.named(row.level), row.reason or "as your config says")
