"""search_replace: a regular expression replaced in several files, all of them or none. The expressions are Python's."""

from __future__ import annotations

import re

from corral.tools.arguments import Arguments, arg
from corral.tools.changeset import Change, make
from corral.tools.diffs import Difference, lines_of
from corral.tools.edits import Text
from corral.tools.failures import Failure, invalid
from corral.tools.limits import MB, REPLACE_FILE_BYTES, REPLACE_FILES, REPLACE_SECONDS, REPLACE_SNIFF_BYTES
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from corral.tools.call import Call
    from corral.tools.spanning import Spans

GLOB = re.compile(r"[*?\[{]")
REFERENCE = re.compile(r"\$(?:(\$)|(\d+)|([^\W\d]\w*)|\{(\w+)\})")


class SearchReplace(Arguments):
    pattern: str = arg("Python regular expression (re)", least=1)
    replacement: str = arg("$1 or ${name} is a group, $$ a dollar sign")
    files: str | list[str] = arg("a file, a directory, a glob, or a list of those", least=1)
    include: str | None = arg('in directories, only files that fit this glob: "*.py"', None)
    case_insensitive: bool = arg("upper and lower case are the same", False)
    multiline: bool = arg("^ and $ match at every line", True)
    dry_run: bool = arg("only say what would change", False)


def search_replace(call: Call, args: SearchReplace) -> Reply:
    expression, is_quick = _expression(args)
    template = _template(args.replacement, expression)
    skipped: dict[str, str] = {}
    texts = {path: (before, Text(before)) for path, before in _contents(call, args, skipped)}
    found = _matches(call, expression, is_quick, [text.lines.text for _, text in texts.values()])
    changes, files, total = [], [], 0
    for (path, (before, text)), spans in zip(texts.items(), found, strict=True):
        after = text.encode(_replaced(text, spans, template))
        if spans and after != before:
            changes.append(Change(path, before, after))
            difference = Difference(lines_of(before), lines_of(after))
            files.append({"path": path, "matches": len(spans), "diff": difference.text()})
            total += len(spans)
    meta: dict[str, Any] = {"files": files}
    if skipped:
        meta["skipped"] = skipped
    if not changes:
        return Reply("no matches found across any target files", meta=meta)
    if not args.dry_run:
        meta["undo"] = make(call, changes)
    said = "[dry-run] would replace" if args.dry_run else "replaced"
    lines = [f"  {file['path']}: {file['matches']} matches" for file in files]
    return Reply("\n".join([f"{said} {total} matches across {len(files)} files:", *lines]), meta=meta)


# ---- what is looked for, and what replaces it ----


def _expression(args: SearchReplace) -> tuple[re.Pattern[str], bool]:
    from corral.tools.expressions import BadExpression, Expression

    try:
        facts = Expression(args.pattern, ignore_case=args.case_insensitive)
    except BadExpression as error:
        raise Failure(
            f"invalid regex: {error}", "invalid_regex", "patterns are Python regular expressions (re)"
        ) from None
    return re.compile(args.pattern, facts.compiled.flags & ~(0 if args.multiline else re.M)), facts.is_quick


def _template(replacement: str, expression: re.Pattern[str]) -> list[str | int]:
    """Texts, and numbers of groups."""
    parts: list[str | int] = []
    done = 0
    for match in REFERENCE.finditer(replacement):
        parts.append(replacement[done : match.start()])
        done = match.end()
        dollar, number, *names = match.groups()
        name = number or names[0] or names[1]
        if dollar:
            parts.append("$")
            continue
        group = int(name) if name.isdigit() else expression.groupindex.get(name, -1)
        if not 0 <= group <= expression.groups:
            raise invalid(f"the pattern has no group {name}", "write $$ for a dollar sign")
        parts.append(group)
    return [*parts, replacement[done:]]


def _replaced(text: Text, spans: Spans, template: list[str | int]) -> str:
    original, folded = text.text, text.lines
    kept, done = [], 0
    for groups in spans:
        first, last = groups[0]
        start = folded.start(first) if first < last else folded.end(first)
        line_end = "\r\n" if original.find("\n", start) > 0 and _ends_with_return(original, start) else "\n"
        kept.append(original[done:start])
        for part in template:
            if isinstance(part, str):
                kept.append(part.replace("\r\n", "\n").replace("\n", line_end))
            else:
                a, b = groups[part]
                kept.append(original[folded.start(a) : folded.end(b)] if a < b else "")
        done = max(folded.end(last), start)
    return "".join([*kept, original[done:]])


def _ends_with_return(text: str, place: int) -> bool:
    return text[text.find("\n", place) - 1] == "\r"


# ---- where ----


def _contents(call: Call, args: SearchReplace, skipped: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    files = call.files
    for path, is_named in _targets(call, args).items():
        call.check_canceled()
        if files.stat(path).st_size > REPLACE_FILE_BYTES:
            if is_named:
                raise Failure(f"file too large: {path} (max {REPLACE_FILE_BYTES // MB} MB)", "file_too_large")
            skipped[path] = "too large"
            continue
        content = files.read_to_change(path, limit=REPLACE_FILE_BYTES)
        if b"\0" in content[:REPLACE_SNIFF_BYTES]:
            skipped[path] = "binary"
        else:
            yield path, content


def _targets(call: Call, args: SearchReplace) -> dict[str, bool]:
    """Paths, and whether each was named outright."""
    wanted = [args.files] if isinstance(args.files, str) else args.files
    found: dict[str, bool] = {}
    for path in wanted:
        for target, is_named in _expanded(call, path, args.include):
            found[target] = found.get(target, False) or is_named
            if len(found) > REPLACE_FILES:
                raise invalid(f"more than {REPLACE_FILES} files", "name fewer, or narrow it with include")
    return found


def _expanded(call: Call, path: str, include: str | None) -> Iterator[tuple[str, bool]]:
    from corral.tools.globs import compile_glob
    from corral.tools.trees import Clock, levels

    fits = compile_glob(include) if include else None
    top = path
    try:
        scan = call.files.scan(path)
    except FileNotFoundError:
        if not GLOB.search(path):
            raise
        glob = path.removeprefix(call.workspace + "/")
        if glob.startswith(("/", "~", "../")) or "/../" in glob:
            raise invalid(f"a glob begins in the workspace: {path}") from None
        fits, top = compile_glob(glob if "/" in glob else f"./{glob}"), "."
        scan = call.files.scan(".")
    if scan.is_file:
        yield path, True
        return
    for level, above in levels(scan, Clock(call)):
        for name in level.files:
            if fits is None or fits(above, name):
                yield "/".join(filter(None, ("" if top == "." else top.rstrip("/"), above, name))), False


# ---- matching ----


def _matches(call: Call, expression: re.Pattern[str], is_quick: bool, texts: list[str]) -> list[Spans]:
    if is_quick or not texts:
        from corral.tools.spanning import spans

        return [spans(expression, text) for text in texts]
    return _in_a_process(call, expression, texts)


def _in_a_process(call: Call, expression: re.Pattern[str], texts: list[str]) -> list[Spans]:
    import json
    import subprocess
    import sys

    from corral.tools import spanning

    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(spanning.__file__)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
    )
    asked = "".join(json.dumps(one) + "\n" for one in ([expression.pattern, expression.flags], *texts))
    try:
        with call.cancel.calling(child.kill):
            answers, _ = child.communicate(asked.encode("ascii"), timeout=REPLACE_SECONDS)
    except subprocess.TimeoutExpired:
        raise _too_slow() from None
    finally:
        child.kill()
        child.communicate()
    call.check_canceled()
    found: list[Spans] = [json.loads(line) for line in answers.splitlines()]
    if len(found) != len(texts):
        raise _too_slow()
    return found


def _too_slow() -> Failure:
    return Failure(
        f"the pattern took longer than {REPLACE_SECONDS} seconds", "timeout", "a simpler pattern, fewer files"
    )


TOOL = Tool(
    name="search_replace",
    help="Replace a regular expression in up to 50 files, all or nothing",
    arguments=SearchReplace,
    run=search_replace,
    destructive=True,
    changes=True,
)
