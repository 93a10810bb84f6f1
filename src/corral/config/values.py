"""What one value of a config file may be. Each reader takes the plain value and gives what Policy wants, or raises
:class:`Wrong`, which says why and, in a list or a table, where."""

from __future__ import annotations

import os

from corral.errors import CorralError
from corral.policy import Grant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Read = Callable[[object], Any]

UNLIMITED = "none"
LARGEST = 2**63 - 1
SECONDS: dict[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
BYTES: dict[str, float] = {
    f"{letter}{end}": 1024**n for n, letter in enumerate("KMGT", 1) for end in ("", "iB")
}

_KINDS = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}
_GRANT = {"path": str, "access": str, "missing": str}


class Wrong(Exception):
    """Why a value cannot be. ``at``: which item of it; ``word`` among ``words``: what a nearer name is sought for."""

    def __init__(
        self, why: str, *, at: tuple[str | int, ...] = (), word: str = "", words: Iterable[str] = ()
    ):
        super().__init__(why)
        self.why = why
        self.at = at
        self.word = word
        self.words = tuple(words)


def shown(value: object) -> str:
    """A value as a person would write it, on one line and not too long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = ascii(value)[1:-1] if not value.isprintable() else value
        return f'"{text if len(text) <= 60 else text[:57] + "…"}"'
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def expect(kind: type, value: object) -> Any:
    """The value, if it is of exactly this type."""
    if type(value) is not kind:
        found = _KINDS.get(type(value), "a date or time")
        raise Wrong(f"must be {_KINDS[kind]}, not {found}")
    return value


def boolean(value: object) -> bool:
    return bool(expect(bool, value))


def one_of(kind: str, words: Iterable[str]) -> Read:
    words = tuple(words)

    def read(value: object) -> str:
        word: str = expect(str, value)
        if word not in words:
            raise Wrong(f"unknown {kind} {shown(word)}; there is {', '.join(words)}", word=word, words=words)
        return word

    return read


def list_of(item: Read) -> Read:
    def read(value: object) -> tuple[Any, ...]:
        if isinstance(value, str):
            raise Wrong(f"must be a list of strings, not one string (did you mean [{shown(value)}]?)")
        found: list[Any] = []
        for index, part in enumerate(expect(list, value)):
            try:
                result = item(part)
            except Wrong as wrong:
                wrong.at = (index, *wrong.at)
                raise
            if result in found:
                raise Wrong(f"{shown(part)} stands here twice", at=(index,))
            found.append(result)
        return tuple(found)

    return read


def path(value: object) -> str:
    text: str = expect(str, value)
    if not text or "\0" in text:
        raise Wrong(f"must be a path, not {shown(text)}")
    return text


def text(value: object) -> str:
    """Any text; empty takes back what an earlier file said."""
    found: str = expect(str, value)
    if "\0" in found:
        raise Wrong("cannot have a NUL byte in it")
    return found


def jail_name(value: object) -> str:
    from corral.policy import check_jail_name

    name: str = expect(str, value)
    try:
        check_jail_name(name)
    except CorralError as refused:
        raise Wrong(f"cannot be: {refused}") from None
    return name


def storage(value: object) -> str | None:
    return None if value == "" else absolute_path(value)


def absolute_path(value: object) -> str:
    expanded = os.path.expanduser(path(value))
    if not os.path.isabs(expanded):
        raise Wrong(f"must be an absolute path or begin with ~/, not {shown(value)}")
    return os.path.normpath(expanded)


def glob(value: object) -> str:
    from corral.paths.globs import check_globs

    try:
        return check_globs([expect(str, value)])[0]
    except CorralError as refused:
        raise Wrong(str(refused)) from None


def globs(value: object) -> tuple[str, ...]:
    found: tuple[str, ...] = list_of(glob)(value)
    if not found:
        raise Wrong(
            "is an empty list; leave it out to make the whole workspace writable, or use mode read-only"
        )
    return found


def sensitive_name(value: object) -> str:
    from corral.paths.globs import check_name_pattern

    name = str(expect(str, value))
    try:
        check_name_pattern(name)
    except CorralError as refused:
        raise Wrong(str(refused)) from None
    return name


def grants(access: str, missing: str) -> Read:
    """A list of paths that all get the same grant."""
    read = list_of(path)
    return lambda value: tuple(Grant(name, access, missing) for name in read(value))  # type: ignore[arg-type]


def masks(value: object) -> tuple[Grant, ...]:
    """Names below home; with ``./`` before them, below the workspace."""
    return tuple(Grant.hide(name) for name in list_of(_mask)(value))


def _mask(value: object) -> str:
    name = path(value)
    if name.startswith("/") or ".." in name.split("/"):
        raise Wrong(f"takes a path below home, or ./PATH below the workspace, not {shown(name)}")
    if name.startswith("./"):
        return name[2:]
    return "~/" + name.removeprefix("~/")


def grant_tables(value: object) -> tuple[Grant, ...]:
    """`[[grant]]`, each with a path, its access and what to do when it is missing."""
    if isinstance(value, dict):
        raise Wrong("is a list of tables (did you mean [[grant]]?)")
    return tuple(_grant_table(index, item) for index, item in enumerate(expect(list, value)))


def _grant_table(index: int, item: object) -> Grant:
    try:
        table: dict[str, object] = expect(dict, item)
        for key, part in table.items():
            if key not in _GRANT:
                there = ", ".join(_GRANT)
                raise Wrong(f"a grant has no {shown(key)}; it has {there}", at=(key,), word=key, words=_GRANT)
            try:
                _ACCESS_READERS[key](part)
            except Wrong as wrong:
                wrong.at, wrong.why = (key,), wrong.why if wrong.words else f"{key} {wrong.why}"
                raise
        for key in ("path", "access"):
            if key not in table:
                raise Wrong(f"a grant needs {key}")
        access = str(table["access"])
        return Grant(str(table["path"]), access, table.get("missing", _missing(access)))  # type: ignore[arg-type]
    except Wrong as wrong:
        wrong.at = (index, *wrong.at)
        raise


def _missing(access: str) -> str:
    return "skip" if access == "hide" else "refuse"


_ACCESS_READERS: dict[str, Read] = {
    "path": path,
    "access": one_of("access", ("rw", "ro", "hide", "none")),
    "missing": one_of("rule for a missing path", ("refuse", "skip", "create")),
}


# ---- amounts ----


def count(value: object) -> int | None:
    if value == UNLIMITED:
        return None
    return _bounded(value, expect(int, value), "4096")


def size(value: object) -> int | None:
    """Bytes, or a string with a unit: K, M, G, T (and KiB …), each 1024 of the one before."""
    if value == UNLIMITED:
        return None
    amount = _with_unit(value, BYTES, "a size", "2G") if isinstance(value, str) else expect(int, value)
    return _bounded(value, amount, "2G")


def whole_size(value: object) -> int:
    amount = size(value)
    if amount is None:
        raise Wrong("cannot be without a limit; output is never kept without bound")
    return amount


def seconds(value: object) -> float | None:
    if value == UNLIMITED:
        return None
    if isinstance(value, str):
        amount = _with_unit(value, SECONDS, "a duration", "30s")
    else:
        amount = value if type(value) is float else expect(int, value)
    if not 0 < amount <= LARGEST:  # not-a-number too
        raise Wrong(f'must be above 0 and finite, like "30s", not {shown(value)} (no limit: "{UNLIMITED}")')
    return amount


def whole_seconds(value: object) -> int | None:
    amount = seconds(value)
    if amount is not None and amount != int(amount):
        raise Wrong(f"must be whole seconds, not {shown(value)}")
    return None if amount is None else int(amount)


def _with_unit(text: str, units: dict[str, float], kind: str, example: str) -> float:
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[len(number) :].strip()
    number = number.strip()
    plain = number.replace(".", "", 1)
    if not (plain.isascii() and plain.isdigit() and len(plain) < 20):
        raise Wrong(f'{shown(text)} is not {kind}, like "{example}" (no limit: "{UNLIMITED}")')
    if unit and unit not in units:
        near = next((u for u in units if u[0].lower() == unit[0].lower()), next(iter(units)))
        raise Wrong(f"{shown(text)} is not {kind}: unknown unit {unit} (did you mean {number}{near}?)")
    return float(number) * units.get(unit, 1) if "." in number else int(number) * units.get(unit, 1)


def _bounded(value: object, amount: float, example: str) -> int:
    if not 0 < amount <= LARGEST or amount != int(amount):
        raise Wrong(
            f'must be a whole number above 0, like {example}, not {shown(value)} (no limit: "{UNLIMITED}")'
        )
    return int(amount)
