"""``${VAR}`` in a config file: in paths, and in what a variable is set to. Never on the command line."""

from __future__ import annotations

import os

from corral.config.values import Wrong, shown
from corral.state import config_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Change = Callable[[str], str]

# Keys whose strings are expanded. Of environment rules only the values that `set` sets.
EXPANDED = frozenset(
    (
        *(
            "roots",
            "rw",
            "ro",
            "hide",
            "mask",
            "unhide",
            "unmask",
            "grant",
            "storage",
            "sandbox.extra_writable",
        ),
        *("scripts", "initjail", "include", "include-optional", "environment.rules"),
        *("related_context.paths",),
    )
)
_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_NAME = _FIRST | frozenset("0123456789")


def expanded(key: str, value: object) -> object:
    """The value with every ``${VAR}`` in it replaced. What is of a wrong type is left for its reader to refuse."""
    return _each(key, value, _expand)


def refuse_variables(key: str, value: object) -> object:
    """For a project's file, where nothing is expanded: a name that looks as if it were would protect nothing."""

    def refuse(text: str) -> str:
        if "${" in text:
            raise Wrong("has a ${…}, which only the user's files may have")
        return text

    return _each(key, value, refuse)


def _each(key: str, value: object, change: Change) -> object:
    if isinstance(value, list):
        return [_part(key, index, item, change) for index, item in enumerate(value)]
    if isinstance(value, dict) and key == "grant" and "path" in value:
        return {**value, "path": _part(key, "path", value["path"], change)}
    if isinstance(value, str) and (key != "environment.rules" or value.lstrip().startswith("set ")):
        return change(value)
    return value


def _part(key: str, at: str | int, part: object, change: Change) -> object:
    try:
        return _each(key, part, change)
    except Wrong as wrong:
        wrong.at = (at, *wrong.at)
        raise


def _expand(text: str) -> str:
    r"""``${VAR}`` is its value and ``\${`` is as it stands. A variable that is not set is refused: as an empty string
    it would make another path of this one."""
    if "${" not in text:
        return text
    found, rest = "", text
    while "${" in rest:
        before, _, rest = rest.partition("${")
        if before.endswith("\\"):
            found += before[:-1] + "${"
            continue
        name, end, rest = rest.partition("}")
        if not end or not name or name[0] not in _FIRST or not _NAME.issuperset(name):
            raise Wrong(rf"has a ${{ that names no variable in {shown(text)} (as it stands: \${{)")
        value = os.environ.get(name)
        if value is None and name == "CORRAL_CONFIG_DIR":
            value = config_directory()
        if value is None:
            raise Wrong(f"needs the variable {name} for {shown(text)}, and it is not set")
        found += before + value
    return found + rest
