"""edit_file: one text in a file for another."""

from __future__ import annotations

from corral.errors import FileTooLarge
from corral.tools.arguments import Arguments, arg
from corral.tools.changeset import Change, make
from corral.tools.diffs import Difference, lines_of
from corral.tools.edits import Edit, Text, apply_edits, find_edit
from corral.tools.failures import Failure
from corral.tools.limits import EDIT_FILE_BYTES
from corral.tools.reply import Reply
from corral.tools.text import cut_line
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.tools.call import Call

SNIFFED = 512


class Replacement(Arguments):
    """What edit_file takes, and multi_edit many of."""

    path: str = arg("the file, relative to the workspace")
    old_text: str = arg("the text to replace; it must be there exactly once")
    new_text: str = arg("what goes in its place")
    fuzzy_indent: bool = arg(
        "find whole lines however they are indented, and indent the new ones alike", False
    )
    show_context: int = arg("show so many lines around the change", 0, least=0, most=100)


class EditFile(Replacement):
    dry_run: bool = arg("only say what would change", False)


def edit_file(call: Call, args: EditFile) -> Reply:
    before = content_of(call, args.path)
    text = Text(before)
    edit = find_edit(text, args.old_text, args.new_text, any_indent=args.fuzzy_indent)
    after = text.encode(apply_edits(text, [edit]))
    if after == before:
        raise Failure("the edit changes nothing", "edit_no_change")
    difference = Difference(lines_of(before), lines_of(after))
    meta: dict[str, Any] = {"edit": told_edit(edit, difference)}
    said = f"edited {args.path}: {told_lines(edit)}"
    if args.dry_run:
        return Reply(f"[dry-run] would have {said}\n{difference.text()}", meta=meta, as_is=True)
    (meta["undo"],) = make(call, [Change(args.path, before, after)])
    return Reply(said + context(after, difference, args.show_context), meta=meta, as_is=True)


def content_of(call: Call, path: str) -> bytes:
    """Of a file whose text is going to change."""
    try:
        content = call.files.read_to_change(path, limit=EDIT_FILE_BYTES)
    except FileTooLarge:
        from corral.tools.read_file import too_large

        raise too_large(call, path, EDIT_FILE_BYTES) from None
    if b"\0" in content[:SNIFFED]:
        raise Failure(f"a binary file: {path}", "binary_file")
    return content


def told_lines(edit: Edit) -> str:
    count = edit.last_line - edit.first_line + 1
    return (
        f"lines {edit.first_line}-{edit.last_line} ({_lines(count)}) replaced with {_lines(edit.new_lines)}"
    )


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"


def told_edit(edit: Edit, difference: Difference) -> dict[str, Any]:
    return {
        "diff": difference.text(),
        "firstChangedLine": difference.first,
        "lastChangedLine": difference.last,
        "matchType": edit.how,
        "fuzzyNormalized": edit.how == "fuzzy",
    }


def context(after: bytes, difference: Difference, around: int) -> str:
    """The new lines and some around them, numbered."""
    if not around:
        return ""
    lines = lines_of(after)
    first, last = max(difference.first - around, 1), min(difference.last + around, len(lines))
    width = len(str(last))
    shown = (f"{n:>{width}}\t{cut_line(line)}" for n, line in enumerate(lines[first - 1 : last], first))
    return "\n" + "\n".join(shown)


TOOL = Tool(
    name="edit_file",
    help="Replace a text in a file; every other byte stays",
    arguments=EditFile,
    run=edit_file,
    destructive=True,
    changes=True,
)
