"""list_dir: what is in a directory, and in the directories below it."""

from __future__ import annotations

from bisect import bisect_left

from corral.tools.arguments import Arguments, arg
from corral.tools.failures import invalid
from corral.tools.limits import LIST_ENTRIES, LIST_MOST_DEPTH, LIST_MOST_ENTRIES
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.files.scanning import Level
    from corral.tools.call import Call


class ListDir(Arguments):
    path: str = arg("the directory", ".")
    depth: int = arg(f"so many levels, 1 to {LIST_MOST_DEPTH}", 3)
    max_entries: int = arg(
        f"name so many entries, at most {LIST_MOST_ENTRIES}; all are counted", LIST_ENTRIES
    )
    changed_since: float = arg("only what was changed after this time (seconds since 1970)", 0, least=0)


def run(call: Call, args: ListDir) -> Reply:
    from corral.tools.trees import Clock

    depth = min(max(args.depth, 1), LIST_MOST_DEPTH)
    most = min(max(args.max_entries, 1), LIST_MOST_ENTRIES)
    clock = Clock(call)
    scan = call.files.scan(args.path)
    if scan.is_file:
        raise invalid(f"not a directory: {args.path}", "stat_file and read_file take files")
    entries: list[str] = []
    top = len(scan.top)
    for level in scan.levels():
        clock.tick()
        for names in (level.directories, level.files, level.others):
            del names[bisect_left(names, ".") : bisect_left(names, "/")]  # all that begin with a dot
        below = level.names[top:]
        prefix = "".join(f"{name}/" for name in below)
        shown = level if not args.changed_since else _changed(level, args.changed_since)
        if prefix:
            entries += [f"{prefix}{name}/" for name in shown.directories]
            entries += [prefix + name for name in (*shown.files, *shown.others)]
        else:
            entries += [name + "/" for name in shown.directories]
            entries += shown.files
            entries += shown.others
        if len(below) + 1 >= depth:
            level.directories.clear()
    entries.sort()
    total = len(entries)
    value: dict[str, Any] = {"entries": entries[:most], "truncated": total > most, "total_count": total}
    if total > most:
        value["notice"] = (
            f"[TRUNCATED: {most} of {total} entries. Use path, depth or max_entries to narrow or widen.]"
        )
    return Reply.json(value)


def _changed(level: Level, since: float) -> Level:
    """The same level with only those entries that were changed afterwards."""
    import os

    from corral.files.scanning import Level

    def is_newer(name: str) -> bool:
        try:
            return os.stat(name, dir_fd=level.fd, follow_symlinks=False).st_mtime > since
        except OSError:
            return False

    newer = Level(level.fd, level.names)
    newer.directories = list(filter(is_newer, level.directories))
    newer.files = list(filter(is_newer, level.files))
    newer.others = list(filter(is_newer, level.others))
    return newer


TOOL = Tool(
    "list_dir",
    "List a directory tree: names in order, directories with a slash, hidden names left out, links not followed.",
    ListDir,
    run,
    read_only=True,
    idempotent=True,
)
