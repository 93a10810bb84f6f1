"""On which line each key of a TOML text stands. tomllib does not say, so an error sends us through the text again.

The text is known to be valid TOML: this walks over it and checks nothing.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.config.source import Where

_BARE_END = " \t\r\n=.]#,}"


def key_lines(text: str) -> dict[Where, int]:
    """Key paths → lines. Items of lists and of arrays of tables are counted from 0: ``("grant", 0, "path")``."""
    walk = _Walk(text)
    walk.document()
    return walk.lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n") + "\n"
        self.at = 0
        self.lines: dict[Where, int] = {}
        self._ends = [i for i, char in enumerate(self.text) if char == "\n"]
        self._counts: dict[Where, int] = {}

    def document(self) -> None:
        table: Where = ()
        while True:
            self._skip_blank()
            if self.at >= len(self.text):
                return
            if self._next() == "[":
                table = self._header()
            else:
                self._pair(table)

    # ---- parts, each leaving `at` behind what it read ----

    def _header(self) -> Where:
        start = self.at
        is_array = self.text.startswith("[[", start)
        self.at += 2 if is_array else 1
        table: Where = ()
        names = self._key()
        for position, name in enumerate(names):
            table = (*table, name)
            self._record(table, start)
            if is_array and position == len(names) - 1:
                self._counts[table] = self._counts.get(table, 0) + 1
            if table in self._counts:
                table = (*table, self._counts[table] - 1)
                self._record(table, start)
        self.at += 2 if is_array else 1
        return table

    def _pair(self, table: Where) -> None:
        start = self.at
        for name in self._key():
            table = (*table, name)
            self._record(table, start)
        self.at += 1  # the equals sign
        self._skip_spaces()
        self._value(table)

    def _key(self) -> list[str]:
        names = []
        while True:
            self._skip_spaces()
            start = self.at
            if self._next() in "\"'":
                self._string()
                names.append(tomllib.loads(f"key = {self.text[start : self.at]}")["key"])
            else:
                while self._next() not in _BARE_END:
                    self.at += 1
                names.append(self.text[start : self.at])
            self._skip_spaces()
            if self._next() != ".":
                return names
            self.at += 1

    def _value(self, where: Where) -> None:
        self._record(where, self.at)
        char = self._next()
        if char in "\"'":
            self._string()
        elif char == "[":
            self._list(where)
        elif char == "{":
            self._inline_table(where)
        else:
            while self._next() not in "\n#,]}":
                self.at += 1

    def _list(self, where: Where) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip_blank()
            if self._next() == "]":
                self.at += 1
                return
            if self._next() == ",":
                self.at += 1
            else:
                self._value((*where, index))
                index += 1

    def _inline_table(self, where: Where) -> None:
        self.at += 1
        while True:
            self._skip_blank()
            if self._next() == "}":
                self.at += 1
                return
            if self._next() == ",":
                self.at += 1
            else:
                self._pair(where)

    def _string(self) -> None:
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(mark)
        while not self.text.startswith(mark, self.at):
            self.at += 2 if quote == '"' and self._next() == "\\" else 1
        self.at += len(mark)
        # One or two quotes may stand right before the three that end a long string.
        while len(mark) == 3 and self._next() == quote:
            self.at += 1

    # ---- characters ----

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip_spaces(self) -> None:
        while self._next() in (" ", "\t"):
            self.at += 1

    def _skip_blank(self) -> None:
        while self._next() and self._next() in " \t\r\n#":
            self.at = self.text.index("\n", self.at) if self._next() == "#" else self.at + 1

    def _record(self, where: Where, at: int) -> None:
        self.lines.setdefault(where, bisect_right(self._ends, at - 1) + 1)
