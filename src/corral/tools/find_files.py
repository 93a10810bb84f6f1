"""find_files: the files below a place whose name, or path, fits a glob."""

from __future__ import annotations

from corral.tools.arguments import Arguments, arg
from corral.tools.limits import FIND_FILES, FIND_MOST_FILES
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.tools.call import Call


class FindFiles(Arguments):
    pattern: str = arg('glob: "*.py" by name, "src/**/*_test.go" by path below the place', least=1)
    path: str = arg("directory to look through", ".")
    limit: int = arg("name so many files; all are counted", FIND_FILES, least=1, most=FIND_MOST_FILES)


def run(call: Call, args: FindFiles) -> Reply:
    from corral.tools.globs import compile_glob
    from corral.tools.trees import Clock, levels

    fits = compile_glob(args.pattern)
    clock = Clock(call)
    scan = call.files.scan(args.path)
    found: list[str] = []
    total = 0
    for level, below in levels(scan, clock):
        prefix = scan.prefix(level)
        names = [prefix + name for name in level.files if fits(below, name)]
        total += len(names)
        found += names[: args.limit - len(found)]
    return Reply.json(
        {
            "files": found,
            "truncated": total > len(found),
            "total_count": total,
            "limit_used": args.limit,
            "backend": "native",
        }
    )


TOOL = Tool(
    "find_files",
    "Find files by a glob.",
    FindFiles,
    run,
    read_only=True,
    idempotent=True,
)
