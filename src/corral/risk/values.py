"""Values of variables that the line itself sets, kept only where nothing else can set them."""

from __future__ import annotations

import re
from collections import Counter

from corral.risk.marks import MAYBE
from corral.risk.words import UNKNOWN

_IDENTIFIER = re.compile(r"(?<![\w$])(?<!\$\{)[A-Za-z_]\w*")
_DEFAULTING = re.compile(r"\$\{(\w+):?=")


class Values:
    """What is known so far. `known` maps names to values; one that may not be reached carries `MAYBE`."""

    def __init__(self, text: str) -> None:
        self.known: dict[str, str] = {}
        self._text = text
        self._mentions: Counter[str] | None = None
        self._defaulted: frozenset[str] = frozenset()

    def remember(self, name: str, value: str, *, straight: bool) -> None:
        """A value counts only if the name is written once: no second assignment, no `read`, no loop over it."""
        if self._mentions is None:
            self._mentions = Counter(_IDENTIFIER.findall(self._text))
            self._defaulted = frozenset(_DEFAULTING.findall(self._text))
        if self._mentions[name] != 1 or name in self._defaulted or UNKNOWN.search(value):
            self.known.pop(name, None)
        else:
            self.known[name] = value if straight else MAYBE + value
