"""search_files: the lines that match a pattern, in every file below a place. No other program sees it."""

from __future__ import annotations

from corral.record import Record
from corral.tools.arguments import Arguments, arg
from corral.tools.failures import Failure
from corral.tools.limits import (
    SEARCH_CONTEXT_LINES,
    SEARCH_FILE_BYTES,
    SEARCH_MATCHES,
    SEARCH_MOST_MATCHES,
    SEARCH_OUTPUT_BYTES,
    SEARCH_SNIFF_BYTES,
    SEARCH_TEXT_LINES,
    SEARCH_TEXT_RUNES,
)
from corral.tools.reply import Reply
from corral.tools.text import cut_line
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from corral.tools.call import Call
    from corral.tools.linewise import Hits
    from corral.tools.matching import Matcher

BATCH_BYTES = 1 << 20


class SearchFiles(Arguments):
    pattern: str = arg(
        "Python regular expression (re), matched line by line; with literal, a fixed text", least=1
    )
    path: str = arg("directory or file to search", ".")
    include: str | None = arg('only files that fit this glob: "*.py", "src/**/*.{ts,tsx}"', None)
    context_lines: int = arg("lines to show around each match", 0, least=0, most=SEARCH_CONTEXT_LINES)
    case_insensitive: bool = arg("upper and lower case are the same", False)
    literal: bool = arg("the pattern is a fixed text", False)
    max_matches: int = arg(
        "show so many matches; all are counted", SEARCH_MATCHES, least=1, most=SEARCH_MOST_MATCHES
    )
    format: Literal["text", "json", "filenames"] = arg("file:line:text, JSON, or counts by file", "text")


class Match(Record):
    """Line and column from 1; ``before`` and ``after``: (line, text) of its context."""

    file: str
    line: int
    column: int
    text: str
    before: tuple[tuple[int, str], ...] = ()
    after: tuple[tuple[int, str], ...] = ()


class Search:
    """One search, from the first file to the last: everything is counted, the first matches are kept."""

    def __init__(self, args: SearchFiles, matcher: Matcher) -> None:
        self.args = args
        self._matcher = matcher
        self._batch: list[tuple[str, bytes]] = []
        self._waiting = 0
        self.matches: list[Match] = []
        self.by_file: dict[str, int] = {}
        self.total = self.searched = self.binary = self.too_large = 0

    def add(self, file: str, content: bytes) -> None:
        if len(content) > SEARCH_FILE_BYTES:
            self.too_large += 1
            return
        if b"\0" in content[:SEARCH_SNIFF_BYTES]:
            self.binary += 1
            return
        self.searched += 1
        if self._matcher.may_be_in(content):
            self._batch.append((file, content))
            self._waiting += len(content)
            if self._waiting >= BATCH_BYTES:
                self.flush()

    def flush(self) -> None:
        batch, self._batch, self._waiting = self._batch, [], 0
        if batch:
            found = self._matcher.many([content for _, content in batch])
            for (file, content), hits in zip(batch, found, strict=True):
                if hits:
                    self._keep(file, content, hits)

    def _keep(self, file: str, content: bytes, hits: Hits) -> None:
        self.total += len(hits)
        self.by_file[file] = len(hits)
        room = self.args.max_matches - len(self.matches)
        if room <= 0 or self.args.format == "filenames":
            return
        from corral.tools.linewise import text_of

        lines = text_of(content).split("\n")
        if lines[-1] == "":
            lines.pop()
        around = self.args.context_lines
        for line, column in hits[:room]:
            self.matches.append(
                Match(
                    file,
                    line + 1,
                    column + 1,
                    lines[line],
                    tuple((n + 1, lines[n]) for n in range(max(0, line - around), line)),
                    tuple((n + 1, lines[n]) for n in range(line + 1, min(len(lines), line + 1 + around))),
                )
            )


def run(call: Call, args: SearchFiles) -> Reply:
    from corral.tools.expressions import BadExpression
    from corral.tools.matching import Matcher
    from corral.tools.trees import Clock

    clock = Clock(call)
    try:
        matcher = Matcher(args.pattern, clock, literal=args.literal, ignore_case=args.case_insensitive)
    except BadExpression as error:
        raise Failure(
            f"invalid regex: {error}",
            "invalid_regex",
            "patterns are Python regular expressions (re); pass literal:true to search for a fixed text",
            meta={"zero_match_reason": "invalid_regex"},
        ) from None
    with matcher:
        search = Search(args, matcher)
        is_empty = _go_through(call, args, search, clock)
    reason = "" if search.total else "path_is_empty_dir" if is_empty else "pattern_matched_nothing"
    meta = {
        "total_count": search.total,
        "truncated": search.total > len(search.matches) and args.format != "filenames",
        "files_searched": search.searched,
        **{key: n for key, n in (("binary", search.binary), ("too_large", search.too_large)) if n},
        **({"zero_match_reason": reason} if reason else {}),
    }
    return _SHAPES[args.format](search, reason, meta)


def _go_through(call: Call, args: SearchFiles, search: Search, clock: Any) -> bool:
    """Whether there was nothing at all to look at."""
    from corral.tools.globs import compile_glob
    from corral.tools.trees import levels

    fits = compile_glob(args.include) if args.include else None
    try:
        scan = call.files.scan(args.path)
    except FileNotFoundError:
        raise Failure(
            f"file not found: {args.path}", "file_not_found", meta={"zero_match_reason": "path_not_found"}
        ) from None
    is_empty = True
    for level, below in levels(scan, clock):
        if level.files:
            is_empty = False
        if level.directories and below == "":
            is_empty = False
        prefix = scan.prefix(level)
        for number, name in enumerate(level.files):
            if fits is not None and not fits(below, name):
                continue
            content = scan.content(level, name, SEARCH_FILE_BYTES)
            if content:
                search.add(prefix + name, content)
            if number % 256 == 255:
                clock.tick()
    search.flush()
    return is_empty


# ---- how it is shown ----


def _as_text(search: Search, reason: str, meta: dict[str, Any]) -> Reply:
    if reason:
        return Reply(f"[no matches in {search.searched} files: {reason}]", meta=meta)
    lines = _text_lines(search.matches)
    kept = lines
    if len(lines) > 2 * SEARCH_TEXT_LINES:
        left_out = len(lines) - 2 * SEARCH_TEXT_LINES
        kept = [
            *lines[:SEARCH_TEXT_LINES],
            f"[... {left_out} lines left out; narrow the search, or use format json ...]",
            *lines[-SEARCH_TEXT_LINES:],
        ]
    if meta["truncated"]:
        kept.append(f"[truncated: {len(search.matches)} of {search.total} matches — narrow the search]")
    return Reply("\n".join(map(cut_line, kept)), meta=meta, as_is=True)


def _text_lines(matches: list[Match]) -> list[str]:
    """As grep shows them: ``-`` instead of ``:`` around a line of context, ``--`` between pieces that do not touch."""
    shown: dict[tuple[str, int], str] = {}
    hits = {(match.file, match.line) for match in matches}
    for match in matches:
        for line, text in (*match.before, (match.line, match.text), *match.after):
            mark = ":" if (match.file, line) in hits else "-"
            shown.setdefault((match.file, line), f"{match.file}{mark}{line}{mark}{text}")
    lines: list[str] = []
    has_context = any(match.before or match.after for match in matches)
    last = ("", 0)
    for (file, line), text in shown.items():
        if has_context and lines and (file, line) != (last[0], last[1] + 1):
            lines.append("--")
        lines.append(text)
        last = (file, line)
    return lines


def _as_json(search: Search, reason: str, meta: dict[str, Any]) -> Reply:
    results: list[dict[str, Any]] = []
    size = 0
    for match in search.matches:
        one: dict[str, Any] = {
            "file": match.file,
            "line": match.line,
            "column": match.column,
            "text": cut_line(match.text, SEARCH_TEXT_RUNES),
        }
        for key, around in (("context_before", match.before), ("context_after", match.after)):
            if around:
                one[key] = [cut_line(text, SEARCH_TEXT_RUNES) for _, text in around]
        size += len(str(one))
        if size > SEARCH_OUTPUT_BYTES:
            break
        results.append(one)
    truncated = len(results) < search.total
    value = {"results": results, "truncated": truncated, "total_count": search.total}
    if reason:
        value["zero_match_reason"] = reason
    return Reply.json(value, meta={**meta, "truncated": truncated})


def _as_filenames(search: Search, reason: str, meta: dict[str, Any]) -> Reply:
    if reason:
        return _as_text(search, reason, meta)
    lines = [f"{file}: {count} matches" for file, count in search.by_file.items()]
    most = search.args.max_matches
    if len(lines) > most:
        lines[most:] = [f"[truncated: {most} of {len(search.by_file)} files]"]
        meta["truncated"] = True
    return Reply("\n".join(lines), meta=meta, as_is=True)


_SHAPES = {"text": _as_text, "json": _as_json, "filenames": _as_filenames}

TOOL = Tool(
    "search_files",
    "Search file contents with a Python regular expression, line by line.",
    SearchFiles,
    run,
    read_only=True,
    idempotent=True,
)
