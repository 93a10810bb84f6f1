"""multi_edit: several texts in several files, all of them or none."""

from __future__ import annotations

from corral.tools.arguments import Arguments, arg
from corral.tools.changeset import Change, make, place_of
from corral.tools.diffs import Difference, lines_of
from corral.tools.edit_file import Replacement, content_of, context, told_edit, told_lines
from corral.tools.edits import Edit, Text, apply_edits, find_edit
from corral.tools.failures import Failure, told
from corral.tools.limits import MULTI_EDITS
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.tools.call import Call


class MultiEdit(Arguments):
    edits: list[Replacement] = arg("the edits, each as edit_file takes it", least=1, most=MULTI_EDITS)
    dry_run: bool = arg("only say what would change", False)


class _File:
    """One file, and the edits that were found in it."""

    def __init__(self, path: str, before: bytes) -> None:
        self.path = path
        self.before = before
        self.text = Text(before)
        self.edits: list[tuple[int, Replacement, Edit]] = []

    def add(self, number: int, wanted: Replacement) -> None:
        edit = find_edit(self.text, wanted.old_text, wanted.new_text, any_indent=wanted.fuzzy_indent)
        for other, earlier, found in self.edits:
            if (earlier.old_text, earlier.new_text) == (wanted.old_text, wanted.new_text):
                return  # the same once more: it is made already
            if edit.start < found.end and found.start < edit.end:
                raise Failure(f"overlaps with edit {other}", "edit_overlap", "make one edit of the two")
        self.edits.append((number, wanted, edit))

    def after(self) -> bytes:
        return self.text.encode(apply_edits(self.text, [edit for _, _, edit in self.edits]))


def multi_edit(call: Call, args: MultiEdit) -> Reply:
    files = _found(call, args.edits)
    changes = [Change(file.path, file.before, file.after()) for file in files]
    if all(change.before == change.after for change in changes):
        raise Failure("the edits change nothing", "edit_no_change")
    kept = [] if args.dry_run else make(call, changes)
    lines, details = [], []
    for file, change in zip(files, changes, strict=True):
        difference = Difference(lines_of(file.before), lines_of(change.after or b""))
        for number, wanted, edit in file.edits:
            lines.append(f"  [{number}] {file.path}: {told_lines(edit)}")
            if wanted.show_context and not args.dry_run:
                lines[-1] += context(change.after or b"", difference, wanted.show_context)
            details.append({"path": file.path, "index": number, **told_edit(edit, difference)})
    count = sum(len(file.edits) for file in files)
    said = f"[dry-run] would apply {count} edits:" if args.dry_run else f"applied {count} edits:"
    meta: dict[str, Any] = {"edits": details}
    if kept:
        meta["undo"] = kept
    return Reply("\n".join([said, *lines]), meta=meta, as_is=True)


def _found(call: Call, edits: list[Replacement]) -> list[_File]:
    """Every edit found in its file; a Failure with all that is wrong otherwise, and nothing is written."""
    files: dict[str, _File] = {}
    wrong: list[tuple[int, str, Failure]] = []
    for number, wanted in enumerate(edits):
        try:
            place = place_of(call, wanted.path)
            if place not in files:
                files[place] = _File(wanted.path, content_of(call, wanted.path))
            files[place].add(number, wanted)
        except (Failure, OSError) as error:
            wrong.append((number, wanted.path, told(error, wanted.path)))
    if not wrong:
        return list(files.values())
    lines = [f"  [{number}] {path}: {failure.message}" for number, path, failure in wrong]
    codes = {failure.code for _, _, failure in wrong}
    raise Failure(
        "\n".join([f"{len(wrong)} of {len(edits)} edits failed validation:", *lines]),
        codes.pop() if len(codes) == 1 else "invalid_args",
        wrong[0][2].suggestion,
        meta={
            "failed": [{"index": number, "path": path, "error_code": one.code} for number, path, one in wrong]
        },
    )


TOOL = Tool(
    name="multi_edit",
    help="Replace several texts in one or more files, all or nothing",
    arguments=MultiEdit,
    run=multi_edit,
    destructive=True,
    changes=True,
)
