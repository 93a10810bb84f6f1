"""checksum_tree: SHA-256 of every file below a directory, and what changed against an earlier answer."""

from __future__ import annotations

import os

from corral.tools.arguments import Arguments, arg
from corral.tools.failures import Failure, invalid
from corral.tools.limits import CHECKSUM_FILE_BYTES, CHECKSUM_FILES
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.files.scanning import Level, Scan
    from corral.tools.call import Call

CHUNK = 1 << 20


class ChecksumTree(Arguments):
    path: str = arg("the directory", ".")
    pattern: str | None = arg('only files whose name fits this glob: "*.py"', None)
    baseline: dict[str, str] | None = arg("an earlier answer, to compare with", None)


def run(call: Call, args: ChecksumTree) -> Reply:
    from corral.tools.globs import compile_glob
    from corral.tools.trees import Clock, levels

    fits = compile_glob(args.pattern) if args.pattern else None
    clock = Clock(call)
    scan = call.files.scan(args.path)
    if scan.is_file:
        raise invalid(f"not a directory: {args.path}")
    hashes: dict[str, str] = {}
    skipped: list[str] = []
    for level, below in levels(scan, clock):
        for name in level.files:
            if fits is not None and not fits(below, name):
                continue
            if len(hashes) >= CHECKSUM_FILES:
                raise Failure(
                    f"more than {CHECKSUM_FILES} files below {args.path}",
                    "resource_limit",
                    "narrow it by path or pattern",
                )
            path = f"{below}/{name}" if below else name
            found = _sha256(scan, level, name)
            if found is None:
                skipped.append(path)
            else:
                hashes[path] = found
            clock.tick()
    meta = {"skipped": skipped} if skipped else None
    if args.baseline is None:
        return Reply.json(dict(sorted(hashes.items())), meta=meta)
    return Reply.json(_compared(args.baseline, hashes), meta=meta)


def _sha256(scan: Scan, level: Level, name: str) -> str | None:
    """None for what cannot be read or is too large."""
    from corral.digest import sha256

    opened = scan.open(level, name)
    if opened is None:
        return None
    fd, info = opened
    try:
        total, got = sha256(), 0
        while got <= CHECKSUM_FILE_BYTES and info.st_size <= CHECKSUM_FILE_BYTES:
            piece = os.read(fd, CHUNK)
            if not piece:
                return total.hexdigest()
            got += len(piece)
            total.update(piece)
    except OSError:
        return None
    finally:
        os.close(fd)
    return None


def _compared(baseline: dict[str, str], hashes: dict[str, str]) -> dict[str, object]:
    both = baseline.keys() & hashes.keys()
    changed = sorted(path for path in both if baseline[path].lower() != hashes[path])
    return {
        "changed": changed,
        "added": sorted(hashes.keys() - baseline.keys()),
        "removed": sorted(baseline.keys() - hashes.keys()),
        "unchanged_count": len(both) - len(changed),
        "hashes": dict(sorted(hashes.items())),
    }


TOOL = Tool(
    "checksum_tree",
    "SHA-256 of the files below a directory; with a baseline, what changed.",
    ChecksumTree,
    run,
    read_only=True,
    idempotent=True,
)
