"""The three levels, the forms `decide` looks at, and one finding."""

from __future__ import annotations

from enum import IntEnum

from corral.record import Record


class Level(IntEnum):
    """How much harm a command line can do, ordered: the highest part decides."""

    SAFE = 0
    CAUTION = 1
    DANGEROUS = 2

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def named(cls, name: str) -> Level:
        try:
            return cls[name.upper()]
        except KeyError:
            raise ValueError(f"{name!r} is no level; levels are safe, caution, dangerous") from None


SAFE, CAUTION, DANGEROUS = Level.SAFE, Level.CAUTION, Level.DANGEROUS

WRITE = "write"
"""Writes a file through an option of a tool that usually reads. Harmless where the jail is proven."""
EXEC = "exec"
"""Runs a program that stands in an option or in inline code."""
NETWORK = "network"
"""Sends something to another machine."""
OPENS = "opens"
"""Opens files to other users."""


class Finding(Record):
    """One reason for a level. `hardline` findings are refused whatever anyone says."""

    level: Level
    reason: str
    forms: tuple[str, ...] = ()
    hardline: bool = False
