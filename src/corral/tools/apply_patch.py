"""apply_patch: files added, deleted and updated in one go, all of them or none."""

from __future__ import annotations

from corral.tools.arguments import Arguments, arg
from corral.tools.changeset import Change, content_before, make, place_of
from corral.tools.diffs import Difference, lines_of
from corral.tools.edit_file import content_of
from corral.tools.edits import Text, encode
from corral.tools.failures import Failure, invalid, told
from corral.tools.limits import PATCH_FILES
from corral.tools.patches import Operation, parse, updated
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.tools.call import Call

LETTERS = {"add": "A", "delete": "D", "update": "M"}


class ApplyPatch(Arguments):
    patch: str = arg("from *** Begin Patch to *** End Patch, with Add File, Delete File and Update File")
    dry_run: bool = arg("only say what would change", False)


def apply_patch(call: Call, args: ApplyPatch) -> Reply:
    operations = parse(args.patch)
    if len(operations) > PATCH_FILES:
        raise invalid(f"{len(operations)} files in one patch; {PATCH_FILES} are allowed")
    changes = _changes(call, operations)
    kept = [] if args.dry_run else make(call, changes)
    lines, files = [], []
    for operation, change in zip(operations, changes, strict=True):
        difference = Difference(lines_of(change.before or b""), lines_of(change.after or b""))
        lines.append(f"  {LETTERS[operation.kind]} {operation.path}")
        files.append({"path": operation.path, "operation": operation.kind, "diff": difference.text()})
    said = "[dry-run] would apply patch" if args.dry_run else "applied patch"
    meta: dict[str, Any] = {"files": files}
    if kept:
        meta["undo"] = kept
    return Reply("\n".join([f"{said} with {len(operations)} operation(s):", *lines]), meta=meta)


def _changes(call: Call, operations: list[Operation]) -> list[Change]:
    """Every one checked against what is there, before anything is written."""
    changes: list[Change] = []
    places: set[str] = set()
    wrong: list[Failure] = []
    for operation in operations:
        try:
            place = place_of(call, operation.path)
            if place in places:
                raise invalid(f"{operation.path} is in the patch twice", "make one update of the two")
            places.add(place)
            changes.append(_change(call, operation))
        except (Failure, OSError) as error:
            wrong.append(told(error, operation.path))
    if wrong:
        more = (
            f" (and {len(wrong) - 1} more: {'; '.join(one.message for one in wrong[1:])})"
            if wrong[1:]
            else ""
        )
        raise Failure(wrong[0].message + more, wrong[0].code, wrong[0].suggestion)
    return changes


def _change(call: Call, operation: Operation) -> Change:
    path = operation.path
    if operation.kind == "update":
        before = content_of(call, path)
        text = Text(before)
        after = text.encode(updated(text.text, operation))
        if after == before:
            raise Failure(f"{path}: the update changes nothing", "edit_no_change")
        return Change(path, before, after)
    found = content_before(call, path)
    exists = found.before is not None or found.unknown
    if operation.kind == "add":
        if exists:
            raise Failure(f"{path} exists; update it", "conflict", "use *** Update File")
        return found.replace(after=encode(operation.text))
    if not exists:
        raise FileNotFoundError(2, "", path)
    return found


TOOL = Tool(
    name="apply_patch",
    help="Add, delete and update files by a patch, all or nothing",
    arguments=ApplyPatch,
    run=apply_patch,
    destructive=True,
    changes=True,
)
