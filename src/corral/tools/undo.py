"""undo: what the tools changed, listed, looked at, and taken back."""

from __future__ import annotations

import time

from corral.tools.arguments import Arguments, arg
from corral.tools.changeset import Change, content_before, make, place_of
from corral.tools.diffs import Difference, lines_of
from corral.tools.failures import Failure, invalid
from corral.tools.limits import UNDO_ENTRIES
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from corral.tools.call import Call
    from corral.tools.history import Entry


class Undo(Arguments):
    action: Literal["list", "preview", "restore", "clear"] = arg("what to do")
    id: str = arg("the entry, or the beginning of its id; for preview and restore", "")
    limit: int = arg("list at most so many, the newest first", UNDO_ENTRIES, least=1, most=UNDO_ENTRIES)


def undo(call: Call, args: Undo) -> Reply:
    if args.action == "list":
        entries = [_told(entry) for entry in call.history.entries(args.limit)]
        return Reply.json({"entries": entries, "count": len(entries)})
    if args.action == "clear":
        return Reply(f"cleared {call.history.clear()} undo entries")
    if not args.id:
        raise invalid(f"{args.action} needs an id", "list them with action list")
    entry = call.history.find(args.id)
    return _preview(call, entry) if args.action == "preview" else _restore(call, entry)


def _told(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.time)),
        "tool": entry.tool,
        "path": entry.path,
        "size": entry.size,
        "created": entry.created,
    }


def _preview(call: Call, entry: Entry) -> Reply:
    _refuse_elsewhere(call, entry)
    files = call.files.remembering(None)  # a diff is no reading: it does not allow to write over anything
    try:
        now = files.read_bytes(entry.path)
    except FileNotFoundError:
        now = b""
        if entry.created:
            return Reply(f"{entry.path} is gone already")
    if entry.created:
        return Reply(f"would remove {entry.path} ({len(now)} bytes), which {entry.tool} created")
    difference = Difference(lines_of(now), lines_of(entry.content or b""))
    return Reply(f"would restore {entry.path}:\n{difference.text() or '(no line changes)'}", as_is=True)


def _refuse_elsewhere(call: Call, entry: Entry) -> None:
    if place_of(call, entry.path) != entry.place:
        raise Failure(f"undo entry {entry.id} is of another place than {entry.path}", "conflict")


def _restore(call: Call, entry: Entry) -> Reply:
    """Through the same checks as any other change, and itself kept for undo."""
    _refuse_elsewhere(call, entry)
    before = content_before(call, entry.path)
    if before.before is None and not before.unknown and entry.created:
        return Reply(f"{entry.path} is gone already")
    if before.before is not None and before.before == entry.content:
        raise Failure(f"{entry.path} is as it was", "edit_no_change")
    (kept,) = make(call, [Change(entry.path, before.before, entry.content, before.unknown)])
    said = f"removed {entry.path}" if entry.created else f"restored {entry.path} ({entry.size} bytes)"
    return Reply(said, meta={"undo": kept})


TOOL = Tool(
    name="undo",
    help="List, preview and take back what the file tools changed",
    arguments=Undo,
    run=undo,
    destructive=True,
    changes=True,
)
