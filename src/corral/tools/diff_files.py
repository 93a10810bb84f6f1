"""diff_files: what is different between two files."""

from __future__ import annotations

from corral.tools.arguments import Arguments, arg
from corral.tools.failures import told
from corral.tools.limits import READ_FILE_BYTES, SEARCH_SNIFF_BYTES
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.tools.call import Call

CONTEXT_LINES = 3
MOST_CONTEXT_LINES = 100


class DiffFiles(Arguments):
    path_a: str = arg("one file", least=1)
    path_b: str = arg("the other", least=1)
    context_lines: int = arg(
        "lines to show around each change", CONTEXT_LINES, least=0, most=MOST_CONTEXT_LINES
    )


def run(call: Call, args: DiffFiles) -> Reply:
    from corral.tools.diffs import Difference, lines_of

    one, other = _content(call, args.path_a), _content(call, args.path_b)
    if one == other:
        return Reply("files are identical", meta={"is_identical": True})
    meta: dict[str, object] = {"is_identical": False}
    if b"\0" in one[:SEARCH_SNIFF_BYTES] or b"\0" in other[:SEARCH_SNIFF_BYTES]:
        return Reply(f"binary files differ: {len(one)} and {len(other)} bytes", meta=meta)
    difference = Difference(lines_of(one), lines_of(other), args.context_lines)
    if difference.same:
        return Reply(
            "files differ only in bytes that no line shows, such as the line end at their end", meta=meta
        )
    meta["first_changed_line"] = difference.first
    return Reply(f"--- {args.path_a}\n+++ {args.path_b}\n{difference.text()}", meta=meta, as_is=True)


def _content(call: Call, path: str) -> bytes:
    """Looked at for comparing, which is not reading: nobody has seen all of it."""
    try:
        return call.files.remembering(None).read_bytes(path, limit=READ_FILE_BYTES)
    except OSError as error:
        raise told(error, path) from None


TOOL = Tool(
    "diff_files",
    "Show the lines that differ between two files.",
    DiffFiles,
    run,
    read_only=True,
    idempotent=True,
)
