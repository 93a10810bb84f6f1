"""stat_file: what is known of a file besides its content."""

from __future__ import annotations

import stat

from corral.tools.arguments import Arguments, arg
from corral.tools.limits import READ_FILE_BYTES
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.tools.call import Call

# How a file may begin to say what it is encoded in. The longer ones first.
MARKS: tuple[tuple[bytes, str], ...] = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


class StatFile(Arguments):
    path: str = arg("a file or directory", least=1)


def run(call: Call, args: StatFile) -> Reply:
    info = call.files.stat(args.path)
    kind = "file" if stat.S_ISREG(info.st_mode) else "directory" if stat.S_ISDIR(info.st_mode) else "special"
    facts: dict[str, object] = {
        "path": args.path,
        "type": kind,
        "size": info.st_size,
        "modified": _rfc3339(info.st_mtime_ns),
        "mode": f"{stat.S_IMODE(info.st_mode):04o}",
    }
    if kind == "file" and info.st_size <= READ_FILE_BYTES:
        # Counting lines is not reading: nobody has seen the content.
        facts |= _about(call.files.remembering(None).read_bytes(args.path, limit=READ_FILE_BYTES))
    return Reply(
        "\n".join(f"{name}: {value}" for name, value in facts.items()), meta={"stat": facts}, as_is=True
    )


def _about(content: bytes) -> dict[str, object]:
    mark = next(((mark, name) for mark, name in MARKS if content.startswith(mark)), None)
    if mark is None and b"\0" in content:
        return {"encoding": "binary", "bom": "no"}
    newlines, pairs = content.count(b"\n"), content.count(b"\r\n")
    alone = content.count(b"\r") - pairs
    kinds = [name for name, count in (("crlf", pairs), ("lf", newlines - pairs), ("cr", alone)) if count]
    return {
        "lines": newlines + (not content.endswith(b"\n") and bool(content)),
        "encoding": mark[1] if mark else _encoding(content),
        "line_ending": kinds[0] if len(kinds) == 1 else "mixed" if kinds else "none",
        "bom": "yes" if mark else "no",
    }


def _encoding(content: bytes) -> str:
    if content.isascii():
        return "ascii"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "unknown"
    return "utf-8"


def _rfc3339(nanoseconds: int) -> str:
    import time

    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(nanoseconds // 10**9))
    except (OverflowError, ValueError, OSError):
        return str(nanoseconds // 10**9)


TOOL = Tool(
    "stat_file",
    "Type, size, line count, time of change, encoding and line ends of a file, without its content.",
    StatFile,
    run,
    read_only=True,
    idempotent=True,
)
