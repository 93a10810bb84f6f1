"""memory: keys and values that outlive the call, by project, task, agent or for all."""

from __future__ import annotations

import os

from corral.tools.arguments import Arguments, arg
from corral.tools.failures import Failure, invalid
from corral.tools.limits import (
    MEMORY_KEY_CHARACTERS,
    MEMORY_SCOPE_ID_CHARACTERS,
    MEMORY_VALUE_BYTES,
    REQUEST_ID_CHARACTERS,
)
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from corral.memory import Memory, Scope
    from corral.tools.call import Call

KEY_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
LONGEST_EXPIRY = 100 * 365 * 86400.0


class MemoryArguments(Arguments):
    action: Literal["save", "recall", "list", "forget", "gc"] = arg("what to do")
    key: str | None = arg("letters, digits, _, . and -", None, most=MEMORY_KEY_CHARACTERS)
    value: str | None = arg(f"for save, at most {MEMORY_VALUE_BYTES} bytes", None)
    scope: Literal["project", "global", "task", "agent"] | None = arg(
        "whose memory; project unless it is said", None
    )
    scope_id: str | None = arg(
        "which task or agent; the path of another project", None, least=1, most=MEMORY_SCOPE_ID_CHARACTERS
    )
    kind: Literal["fact", "directive", "lesson"] = arg("what it is", "fact")
    pin: bool = arg("it never expires, and a later save does not unpin it", False)
    expires_in: str | None = arg('gone after this time: "90m", "12h", "7d", "2w"', None)
    include_values: bool = arg("list values too, not keys alone", False)
    agent: str | None = arg("who asks, for request_id", None, most=MEMORY_SCOPE_ID_CHARACTERS)
    request_id: str | None = arg(
        "the same change with the same id is made once", None, least=1, most=REQUEST_ID_CHARACTERS
    )


def run(call: Call, args: MemoryArguments) -> Reply:
    scope = _scope(call, args)
    action: Callable[[Call, MemoryArguments, Memory, Scope], Reply] = _ACTIONS[args.action]
    import sqlite3

    try:
        return action(call, args, _store(call), scope)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise Failure("memory is busy", "conflict", "try again") from None
        raise Failure(f"memory: {error}", "io_error") from None
    except sqlite3.Error as error:
        raise Failure(f"memory: {error}", "io_error") from None


def _store(call: Call) -> Memory:
    from corral.memory import Memory

    state = call.state
    return call.shared("memory", lambda: Memory(state))


# ---- actions ----


def _save(call: Call, args: MemoryArguments, store: Memory, scope: Scope) -> Reply:
    key = _key(args)
    if args.value is None:
        raise invalid("value is required for save")
    size = len(args.value.encode("utf-8", "surrogatepass"))
    if size > MEMORY_VALUE_BYTES:
        raise invalid(f"value has {size} bytes; {MEMORY_VALUE_BYTES} are allowed")
    if not _is_storable(args.value):
        raise invalid("value has half a surrogate pair in it, which no text has")
    value, expires_at = args.value, _expiry(args)

    def change() -> str:
        store.save(scope, key, value, kind=args.kind, pin=args.pin, expires_at=expires_at)
        return f"saved: {key}"

    return _once(call, args, store, change)


def _recall(call: Call, args: MemoryArguments, store: Memory, scope: Scope) -> Reply:
    key = _key(args)
    entry = store.recall(scope, key)
    if entry is None:
        raise Failure(f"key not found: {key}", "file_not_found", 'use action="list" to see available keys')
    return Reply(entry.value, as_is=True)


def _list(call: Call, args: MemoryArguments, store: Memory, scope: Scope) -> Reply:
    entries = store.entries(scope)
    if not args.include_values:
        return Reply.json({"keys": [entry.key for entry in entries], "count": len(entries)})
    shown = [
        {
            "key": entry.key,
            "value": entry.value,
            "value_type": entry.value_type,
            "kind": entry.kind,
            "pinned": entry.pinned,
            **({"expires_at": _rfc3339(entry.expires_at)} if entry.expires_at is not None else {}),
            "updated_at": _rfc3339(entry.updated_at),
        }
        for entry in entries
    ]
    return Reply.json({"entries": shown, "count": len(shown)})


def _forget(call: Call, args: MemoryArguments, store: Memory, scope: Scope) -> Reply:
    key = _key(args)

    def change() -> str:
        store.forget(scope, key)
        return f"forgotten: {key}"

    return _once(call, args, store, change)


def _gc(call: Call, args: MemoryArguments, store: Memory, scope: Scope) -> Reply:
    """Of one scope if one is named, else of all."""
    import json

    only = scope if args.scope is not None else None

    def change() -> str:
        entries, answers = store.collect(only)
        told = {"deleted": entries, "idempotency_deleted": answers, "scope": args.scope or "all"}
        return json.dumps(told, separators=(",", ":"))

    return _once(call, args, store, change)


def _once(call: Call, args: MemoryArguments, store: Memory, change: Callable[[], str]) -> Reply:
    from corral.memory import ReplayMismatch

    request_id = args.request_id or call.request_id
    asked = {name: getattr(args, name) for name in args._fields if name not in ("agent", "request_id")}
    asked["workspace"] = call.workspace
    try:
        answer = store.once(args.agent or call.client or "agent", request_id, asked, change)
    except ReplayMismatch as error:
        raise Failure(str(error), "conflict", "use a new request_id for a new request") from None
    return Reply(answer, as_is=True)


_ACTIONS = {"save": _save, "recall": _recall, "list": _list, "forget": _forget, "gc": _gc}


# ---- arguments ----


def _key(args: MemoryArguments) -> str:
    if not args.key:
        raise invalid(f"key is required for {args.action}")
    if not KEY_CHARACTERS.issuperset(args.key):
        raise invalid("key may have letters, digits, _, . and - only")
    return args.key


def _scope(call: Call, args: MemoryArguments) -> Scope:
    from corral.memory import Scope

    name = args.scope or "project"
    if args.scope_id is not None and not _is_storable(args.scope_id):
        raise invalid("scope_id has half a surrogate pair in it, which no text has")
    if name == "project":
        given = args.scope_id
        return Scope(name, project_of(call.workspace) if given is None else _normal(given, call.workspace))
    if name == "global":
        if args.scope_id is not None:
            raise invalid("scope_id does not go with scope global")
        return Scope(name)
    if args.scope_id is None:
        raise invalid(f"scope_id is required for scope {name}")
    return Scope(name, args.scope_id)


def _normal(path: str, workspace: str) -> str:
    """As a name for a scope; whether anything is there is not looked at."""
    return os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))


def project_of(workspace: str) -> str:
    """The nearest directory from here up that has a .git, a file or a directory; else the workspace. Only whether it is
    there is asked: nothing of it is read."""
    at = os.path.realpath(workspace)
    while True:
        if os.path.lexists(os.path.join(at, ".git")):
            return at
        above = os.path.dirname(at)
        if above == at:
            return os.path.realpath(workspace)
        at = above


def _expiry(args: MemoryArguments) -> float | None:
    if args.expires_in is None:
        return None
    if args.pin:
        raise invalid("what is pinned does not expire; leave out pin or expires_in")
    import re
    import time

    pieces = re.findall(r"([0-9]+(?:\.[0-9]+)?)([smhdw])", args.expires_in)
    seconds = sum(float(number) * UNITS[unit] for number, unit in pieces)
    if "".join(map("".join, pieces)) != args.expires_in or not 0 < seconds <= LONGEST_EXPIRY:
        raise invalid(f"expires_in is a time such as 90m, 12h, 7d or 2w, not {args.expires_in!r}")
    return time.time() + seconds


def _is_storable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _rfc3339(seconds: float) -> str:
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


TOOL = Tool(
    "memory",
    "Keep notes across calls: save, recall, list, forget, gc; by project, task, agent or for all.",
    MemoryArguments,
    run,
    destructive=True,
)
