"""The changes as a patch that `git apply` and `patch` take. What a patch cannot say stands in lines that begin with #.

Binary files are told by size and digest, or, in a patch that is to be kept, whole, in git's own form.
"""

from __future__ import annotations

import base64
import hashlib
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from corral.changes.change import DIRECTORY, FILE, LINK, Change, Node, selects
from corral.changes.contents import LARGEST_TEXT, Contents, both_text
from corral.changes.layers import Layers
from corral.changes.lines import hunks, split_lines
from corral.changes.sealing import survey
from corral.denials.denial import printable

NO_NEWLINE = b"\\ No newline at end of file\n"
BINARY_LINE = 52
_QUOTED = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def diff(layers: Layers, paths: Sequence[str] | None = None, *, whole: bool = False) -> Iterator[bytes]:
    """One piece a change. ``whole``: nothing is left out, for a patch that is kept."""
    changes = [change for change in survey(layers).changes if selects(paths, change)]
    return pieces(layers, changes, whole=whole)


def pieces(layers: Layers, changes: Sequence[Change], *, whole: bool = False) -> Iterator[bytes]:
    if not changes:
        return
    with Contents(layers) as contents:
        for change in changes:
            if is_in_repository(change):
                yield _as_remarks(Patch(contents, change, whole=False).text())
            else:
                yield Patch(contents, change, whole).text()


def is_in_repository(change: Change) -> bool:
    """git takes no patch with such a path in it, and refuses all the rest with it."""
    names = {name.casefold() for path in (change.path, change.source or "") for name in path.split("/")}
    return ".git" in names


def _as_remarks(patch: bytes) -> bytes:
    lines = split_lines(patch)
    return b"".join(line if line.startswith(b"# ") else b"# " + line for line in lines)


class Patch:
    def __init__(self, contents: Contents, change: Change, whole: bool) -> None:
        self._contents = contents
        self._change = change
        self._whole = whole
        self._out: list[bytes] = []

    def text(self) -> bytes:
        change = self._change
        for flag in change.flags:
            self._remark(f"{change.path} runs later: {flag.reason}")
        if change.attributes:
            self._remark(f"{change.path}: extended attributes differ: {', '.join(change.attributes)}")
        if change.refused:
            self._remark(f"{change.path}: not applied: {change.refused}")
        if change.conflict and not self._whole:
            self._conflict(change)
        else:
            self._plain(change)
        return b"".join(self._out)

    def _plain(self, change: Change) -> None:
        before, after = change.before, change.after
        if before is not None and before.kind == DIRECTORY and (after is None or after.kind != DIRECTORY):
            self._deleted_directory(change)
            before = None
        if after is not None and after.kind == DIRECTORY:
            if before is not None and before.kind in (FILE, LINK):
                self._file(replace(change, kind="deleted", after=None), self._contents.before(change), b"")
            elif change.kind == "mode":
                self._modes(change)
            else:
                self._remark(f"directory {change.path} {change.kind}")
            return
        if before is None and after is None:
            return
        if after is not None and after.kind not in (FILE, LINK):
            self._remark(f"{after.kind} {change.path} {change.kind}")
            return
        if change.kind in ("times", "attributes"):
            self._remark(f"{change.path}: {change.kind} differ")
            return
        if self._is_too_large(change):
            return
        old = self._old(change) if before is not None and before.kind in (FILE, LINK) else b""
        new = self._contents.after(change) if after is not None else b""
        if (
            before is not None
            and after is not None
            and before.kind != after.kind
            and before.kind in (FILE, LINK)
        ):
            self._file(replace(change, kind="deleted", after=None), old, b"")
            self._file(replace(change, kind="added", before=None), b"", new)
        else:
            self._file(replace(change, before=before), old, new)

    def _old(self, change: Change) -> bytes:
        if not change.conflict:
            return self._contents.before(change)
        base = self._contents.base(change)
        if base is not None:
            return base
        return self._contents.outside(change) or b""

    def _deleted_directory(self, change: Change) -> None:
        lower = self._contents.lower
        for path, info in lower.below(change.path):
            node = lower.bare_node(path, info)
            if node.kind in (FILE, LINK):
                content = lower.content(path)
                self._file(Change(path, "deleted", node, None), content, b"")
        self._remark(f"directory {change.path} deleted")

    # ---- one file ----

    def _file(self, change: Change, old: bytes, new: bytes) -> None:
        before, after = change.before, change.after
        is_binary = not both_text(old, new)
        if is_binary and not self._whole and (old != new or before is None or after is None):
            self._binary_remark(change, old, new)
            return
        one, other = change.source or change.path, change.path
        self._line(f"diff --git {quoted(f'a/{one}')} {quoted(f'b/{other}')}")
        if before is None:
            self._line(f"new file mode {git_mode(after)}")
        elif after is None:
            self._line(f"deleted file mode {git_mode(before)}")
        elif git_mode(before) != git_mode(after):
            self._line(f"old mode {git_mode(before)}")
            self._line(f"new mode {git_mode(after)}")
        if change.source is not None:
            self._line("similarity index 100%")
            self._line(f"rename from {quoted(one)}")
            self._line(f"rename to {quoted(other)}")
        self._modes(change)
        if old == new and before is not None and after is not None:
            return
        same = before is not None and after is not None and git_mode(before) == git_mode(after)
        mode = f" {git_mode(after)}" if same else ""
        self._line(f"index {blob(old, before)}..{blob(new, after)}{mode}")
        if is_binary:
            self._line("GIT binary patch")
            self._literal(new)
            self._literal(old)
            return
        if old or new:
            self._line(f"--- {_named('a', one) if before is not None else '/dev/null'}")
            self._line(f"+++ {_named('b', other) if after is not None else '/dev/null'}")
            self._hunks(old, new)

    def _hunks(self, old: bytes, new: bytes, prefix: bytes = b"") -> None:
        for hunk in hunks(split_lines(old), split_lines(new)):
            self._out.append(prefix + hunk.header().encode() + b"\n")
            for mark, line in hunk.rows:
                self._out.append(prefix + mark + line)
                if not line.endswith(b"\n"):
                    self._out.append(b"\n" + prefix + NO_NEWLINE)

    def _modes(self, change: Change) -> None:
        """What git does not tell apart."""
        before, after = change.before, change.after
        if before is None or after is None or LINK in (before.kind, after.kind) or before.mode == after.mode:
            return
        if DIRECTORY in (before.kind, after.kind) or git_mode(before) == git_mode(after):
            self._remark(f"{change.path}: mode {before.mode:o} -> {after.mode:o}")

    def _binary_remark(self, change: Change, old: bytes, new: bytes) -> None:
        def told(node: Node | None, content: bytes) -> str:
            if node is None:
                return "nothing"
            return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}"

        why = "binary" if max(len(old), len(new)) <= LARGEST_TEXT else "large"
        self._remark(
            f"{why} {change.path} {change.kind}: {told(change.before, old)} -> {told(change.after, new)}"
        )

    def _is_too_large(self, change: Change) -> bool:
        """Told by what is known of it: a program can leave a file that no memory holds."""
        nodes = (change.before, change.after)
        if self._whole or not any(node and node.kind == FILE and node.size > LARGEST_TEXT for node in nodes):
            return False
        told = [f"{node.size} bytes, sha256 {node.digest}" if node else "nothing" for node in nodes]
        self._remark(f"large {change.path} {change.kind}: {told[0]} -> {told[1]}")
        return True

    def _literal(self, content: bytes) -> None:
        self._line(f"literal {len(content)}")
        packed = zlib.compress(content, 9)
        for at in range(0, len(packed), BINARY_LINE):
            piece = packed[at : at + BINARY_LINE]
            size = len(piece)
            letter = chr(ord("A") + size - 1) if size <= 26 else chr(ord("a") + size - 27)
            self._line(letter + base64.b85encode(piece, pad=True).decode())
        self._line("")

    # ---- conflicts ----

    def _conflict(self, change: Change) -> None:
        """Both versions, and the base they came from where there is one. Nothing that `git apply` would act on."""
        self._remark(f"CONFLICT in {change.path}: {change.why}")
        if change.is_directory or (change.after is not None and change.after.kind not in (FILE, LINK)):
            return
        if self._is_too_large(change):
            return
        inside = self._contents.after(change)
        outside = self._contents.outside(change)
        base = self._contents.base(change) if change.conflict == "after" else None
        if not both_text(inside, outside or b"", base or b""):
            self._binary_remark(change, outside or b"", inside)
            return
        if base is None:
            self._remark("outside (-) and inside (+); there is no base:")
            self._hunks(outside or b"", inside, b"# ")
            return
        self._remark("what was changed outside since the run, from the common base:")
        self._hunks(base, outside or b"", b"# ")
        self._remark("what was changed inside, from the same base:")
        self._hunks(base, inside, b"# ")

    # ---- lines ----

    def _line(self, text: str) -> None:
        self._out.append(text.encode(errors="surrogateescape") + b"\n")

    def _remark(self, text: str) -> None:
        self._line(f"# {printable(text)}")


def quoted(name: str) -> str:
    """As git writes a name: in quotes with escapes if there is anything odd in it."""
    raw = name.encode(errors="surrogateescape")
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in raw):
        return name
    shown = []
    for byte in raw:
        if byte in _QUOTED:
            shown.append("\\" + _QUOTED[byte])
        elif 0x20 <= byte < 0x7F:
            shown.append(chr(byte))
        else:
            shown.append(f"\\{byte:03o}")
    return f'"{"".join(shown)}"'


def _named(side: str, path: str) -> str:
    name = quoted(f"{side}/{path}")
    return f"{name}\t" if " " in name and not name.startswith('"') else name


def git_mode(node: Node | None) -> str:
    if node is None:
        return "000000"
    if node.kind == LINK:
        return "120000"
    return "100755" if node.mode & stat.S_IXUSR else "100644"


def blob(content: bytes, node: Node | None) -> str:
    """The name that git gives to a content."""
    if node is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
