"""What `classify` answers."""

from __future__ import annotations

from corral.record import Record
from corral.risk.levels import Level


class Part(Record):
    """One simple command of the line: its own text, the program it runs, its own level and why."""

    text: str
    program: str
    level: Level
    reasons: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    hardline: bool = False


class Verdict(Record):
    """The level of a whole line is the highest of its parts and of what its reading left in doubt."""

    level: Level
    reasons: tuple[str, ...]
    parts: tuple[Part, ...]
    hardline: bool = False
    forms: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """All reasons of the verdict's own level in one line."""
        return "; ".join(self.reasons)
