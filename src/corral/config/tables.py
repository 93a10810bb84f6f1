"""`[agents.NAME]`: what a user's file says of an agent, in place of what Corral ships for it."""

from __future__ import annotations

from corral.config.values import Wrong, expect, list_of, path, shown, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LISTS = ("commands", "own", "shared", "guarded", "state", "programs", "keep", "arguments")
_FIELDS = (*_LISTS, "set")


def agent_tables(value: object) -> dict[str, dict[str, Any]]:
    """By name, the fields of Agent that are given, and the commands that it goes by."""
    found: dict[str, dict[str, Any]] = {}
    for name, table in expect(dict, value).items():
        try:
            found[name] = _agent_table(table)
        except Wrong as wrong:
            wrong.at = (name, *wrong.at)
            raise
    return found


def _agent_table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Wrong("is a table for each agent (did you mean [agents.NAME]?)")
    fields: dict[str, Any] = {}
    for key, part in value.items():
        if key not in _FIELDS:
            why = f"an agent has no {shown(key)}; it has {', '.join(_FIELDS)}"
            raise Wrong(why, at=(key,), word=key, words=_FIELDS)
        try:
            if key == "set":
                fields["tell"] = tuple(
                    _setting(name, content) for name, content in expect(dict, part).items()
                )
            else:
                fields[key] = list_of(_below_home if key in _LISTS[1:6] else text)(part)
        except Wrong as wrong:
            wrong.at, wrong.why = (key, *wrong.at), f"{key} {wrong.why}"
            raise
    return fields


def _setting(name: str, content: object) -> tuple[str, str]:
    if not name or "=" in name or "\0" in name:
        raise Wrong(f"{shown(name)} is no name of a variable")
    return name, text(content)


def _below_home(value: object) -> str:
    name = path(value).removeprefix("~/").rstrip("/")
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise Wrong(f"takes paths below home, not {shown(value)}")
    return name
