"""write_file: a whole new content."""

from __future__ import annotations

from corral.tools.arguments import Arguments, arg
from corral.tools.changeset import content_before, make
from corral.tools.diffs import Difference, lines_of
from corral.tools.edits import encode
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.tools.call import Call


class WriteFile(Arguments):
    path: str = arg("the file, relative to the workspace; missing directories are made")
    content: str = arg("all of its new content")
    dry_run: bool = arg("only say what would change", False)


def write_file(call: Call, args: WriteFile) -> Reply:
    content = encode(args.content)
    change = content_before(call, args.path).replace(after=content)
    if args.dry_run:
        return _would(args.path, change.before, content, change.unknown)
    (kept,) = make(call, [change])
    return Reply(f"wrote {len(content)} bytes to {args.path}", meta={"undo": kept})


def _would(path: str, before: bytes | None, after: bytes, unknown: bool) -> Reply:
    if unknown:
        return Reply(f"[dry-run] would replace {path} ({len(after)} bytes)")
    if before is None:
        return Reply(f"[dry-run] would create {path} ({len(after)} bytes)")
    difference = Difference(lines_of(before), lines_of(after))
    return Reply(f"[dry-run] diff for {path}:\n{difference.text() or '(no line changes)'}", as_is=True)


TOOL = Tool(
    name="write_file",
    help="Create a file or replace all of it, whole or not at all",
    arguments=WriteFile,
    run=write_file,
    destructive=True,
    idempotent=True,
    changes=True,
)
