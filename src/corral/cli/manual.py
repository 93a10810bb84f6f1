"""What the help texts say, as data: completion, the man page and the reference are made from it.

A help text has usage lines, prose, and rows such as ``  -m, --mode MODE   what it does``. Nobody writes an option down
a second time, so none of these can lag behind what a command takes.
"""

from __future__ import annotations

import contextlib
import io
import re

from corral.cli import COMMANDS, _subcommand
from corral.record import Record

_ROW = re.compile(r"  (-[\w-]+(?:, -[\w-]+)*)(?: ([^ ]+))?(?:  +(.*))?$")
_IN_USAGE = re.compile(r"\[(-[\w|-]+)(?: ([^\]]+?))?(?: …)?\]")
_VERBS = re.compile(r"corral [a-z]+ \[?([a-z][a-z|]*)")


class Option(Record):
    """``operand`` is empty for a switch; ``text`` where the usage line is all that is said."""

    names: tuple[str, ...]
    operand: str
    text: str


class Entry(Record):
    """One command. ``usage`` are its usage lines, ``prose`` what the help says beside its rows."""

    name: str
    summary: str
    usage: tuple[str, ...]
    prose: tuple[str, ...]
    options: tuple[Option, ...]
    verbs: tuple[str, ...]


def entries() -> list[Entry]:
    return [entry(name) for name in COMMANDS]


def entry(name: str) -> Entry:
    usage, rest = _parted(help_of(name))
    rows, prose = _rows(rest)
    told = {tuple(names.split("|")): operand for line in usage for names, operand in _IN_USAGE.findall(line)}
    operands = {word: operand for names, operand in told.items() for word in names}
    options = [row.replace(operand=row.operand or operands.get(row.names[0], "")) for row in rows]
    listed = {known for row in rows for known in row.names}
    options += [Option(names, operand, "") for names, operand in told.items() if not listed & {*names}]
    if "--help" not in listed:
        options.append(Option(("--help", "-h"), "", "this text"))
    return Entry(name, COMMANDS[name][1], usage, prose, tuple(options), _verbs(usage))


def help_of(name: str) -> str:
    """What ``corral NAME --help`` prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        _subcommand(name)(name, ["--help"])
    return said.getvalue()


def _parted(text: str) -> tuple[tuple[str, ...], list[str]]:
    """The usage lines, without the word that begins them, and the lines after them."""
    lines = text.rstrip("\n").splitlines()
    end = next((at for at, line in enumerate(lines) if not line), len(lines))
    usage = [lines[0].removeprefix("usage: "), *(line[len("usage: ") :] for line in lines[1:end])]
    return tuple(usage), lines[end:]


def _rows(lines: list[str]) -> tuple[list[Option], tuple[str, ...]]:
    rows: list[Option] = []
    prose: list[str] = []
    for line in lines:
        found = _ROW.match(line)
        if found:
            names = tuple(sorted(found[1].split(", "), key=len, reverse=True))
            rows.append(Option(names, found[2] or "", found[3] or ""))
        elif rows and line.startswith(" " * 10) and line.strip():
            rows[-1] = rows[-1].replace(text=f"{rows[-1].text} {line.strip()}")
        else:
            prose.append(line)
    return rows, tuple(prose)


def _verbs(usage: tuple[str, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for line in usage:
        verbs = _VERBS.search(line)
        if verbs:
            found += verbs[1].split("|")
    return tuple(dict.fromkeys(found))
