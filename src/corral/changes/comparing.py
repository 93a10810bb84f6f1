"""Comparing: the upper directory against the lower one. Only what the upper holds is looked at, so the cost grows
with the changes and not with the tree."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from corral.changes.change import DIRECTORY, FILE, LINK, Change, Node, is_at_or_below
from corral.changes.gitindex import same_but_for_stat_data
from corral.changes.trees import Tree, is_directory
from corral.changes.upper import Marks, Upper, is_whiteout

# Set by the system on whatever is made, so no difference that a program made.
UNTOLD_ATTRIBUTES = ("security.selinux", "security.ima", "security.evm")
SET_ID = 0o6000
DURING = "during"
# No name below a longer path can be reached by it; a program can make one, step by step.
DEEPEST = 4095 - 256
LARGEST_INDEX = 1 << 28  # of git's; a larger one is not read into memory
TOO_DEEP = "it lies too deep to be looked into"


@dataclass(frozen=True, slots=True)
class _Directory:
    """A directory of the merged view that is still to be looked at. ``base``: the lower directory behind it, if any;
    ``compared``: whether the lower one of the same name counts as what was before."""

    path: str
    in_upper: bool
    base: str | None
    compared: bool
    why: str  # the conflict that everything below shares, or nothing


class Comparison:
    """``previous``: what an earlier run left in the same upper directory; what was before it stays what was before.
    ``t0`` None: nothing is said about what happened meanwhile."""

    def __init__(
        self,
        lower: Tree,
        upper: Upper,
        t0: int | None,
        previous: Mapping[str, Change],
        hidden: tuple[str, ...] = (),
    ) -> None:
        self._lower = lower
        self._upper = upper
        self._t0 = t0
        self._previous = previous
        self._hidden = hidden
        self._moved_in: list[
            tuple[str, int | None]
        ] = []  # copied up, and nothing below: renamed, or lost below

    def changes(self) -> list[Change]:
        found: dict[str, Change] = {}
        ahead = [_Directory("", True, "", True, "")]
        while ahead:
            directory = ahead.pop()
            for name in self._names(directory):
                change, inner = self._entry(directory, name)
                if inner is not None and len(os.fsencode(inner.path)) > DEEPEST:
                    inner = None
                    change = change and replace(change, conflict="doubt", why=TOO_DEEP)
                if change is not None:
                    found[change.path] = change
                if inner is not None:
                    ahead.append(inner)
        return _without_idle(self._told_apart(found))

    def _names(self, directory: _Directory) -> list[str]:
        names = set(self._upper.names(directory.path)) if directory.in_upper else set()
        if directory.base != directory.path:
            if directory.base is not None:
                names.update(self._lower.names(directory.base))
            if directory.compared:
                names.update(self._lower.names(directory.path))
        return sorted(names)

    def _entry(self, above: _Directory, name: str) -> tuple[Change | None, _Directory | None]:
        path = f"{above.path}/{name}" if above.path else name
        entry = self._upper.look(path) if above.in_upper else None
        behind = None if above.base is None else f"{above.base}/{name}" if above.base else name
        old = self._lower.look(path) if above.compared else None
        if entry is not None:
            after_info = None if is_whiteout(entry) else entry
        else:
            after_info = self._lower.look(behind) if behind is not None else None
        if is_directory(after_info):
            return self._directory(above, path, entry, behind, old)
        marks = self._upper.marks(path) if entry is not None and after_info is not None else None
        if after_info is None:
            after = None
        elif entry is not None:
            known = self._previous.get(path)
            after = self._upper.node_of(path, after_info, known.after if known else None)
        else:
            assert behind is not None
            after = self._lower.node_of(behind, after_info)
        return self._leaf(above, path, behind, old, after, marks), None

    def _directory(
        self,
        above: _Directory,
        path: str,
        entry: os.stat_result | None,
        behind: str | None,
        old: os.stat_result | None,
    ) -> tuple[Change | None, _Directory]:
        marks = self._upper.marks(path) if entry is not None else Marks({}, self._upper.prefix)
        redirect = marks.redirected_from(above.base)
        base = redirect
        if redirect is None and not marks.opaque and behind is not None:
            base = behind if is_directory(self._lower.look(behind)) else None
        known = self._previous.get(path)
        was_new = known is not None and known.before is None
        why = above.why or self._why_not_the_same_directory(path, marks, behind, redirect)
        inner = _Directory(path, entry is not None, base, is_directory(old) and not was_new, why)
        if entry is not None:
            after = self._upper.bare_node(path, entry)
        else:
            assert behind is not None
            info = self._lower.look(behind)
            assert info is not None
            after = self._lower.bare_node(behind, info)
        before, changed = self._before(path, old, is_replaced=not is_directory(old))
        if before is None:
            kind = "added"
        elif before.kind != DIRECTORY or base != path:
            kind = "replaced"
        elif before.mode != after.mode:
            kind = "mode"
        else:
            kind = ""
        attributes = self._attributes(path, marks, before) if entry is not None else ()
        if not kind and not attributes:
            return None, inner
        change = Change(path, kind or "attributes", before, after, attributes=attributes)
        return self._judged(change, changed if before is None or before.kind != DIRECTORY else 0, why), inner

    def _leaf(
        self,
        above: _Directory,
        path: str,
        behind: str | None,
        old: os.stat_result | None,
        after: Node | None,
        marks: Marks | None,
    ) -> Change | None:
        before, changed = self._before(path, old, is_replaced=True)
        if before is None and after is None:
            return None
        # With several names it may be a link to something that is still there.
        is_new = before is None and path not in self._previous and after is not None and after.names == 1
        if (
            is_new
            and marks is not None
            and marks.copied_up
            and (behind is None or not self._lower.look(behind))
        ):
            self._moved_in.append((path, marks.origin_inode))
        attributes = self._attributes(path, marks, before) if marks is not None else ()
        kind = self._kind(path, before, after) or ("attributes" if attributes else "")
        if not kind:
            return None
        return self._judged(Change(path, kind, before, after, attributes=attributes), changed, above.why)

    def _kind(self, path: str, before: Node | None, after: Node | None) -> str:
        if before is None:
            return "added"
        if after is None:
            return "deleted"
        if before.kind != after.kind:
            return "replaced"
        if before.digest != after.digest or before.size != after.size:
            return "" if self._is_same_index(path, before, after) else "modified"
        if before.mode != after.mode and before.kind != LINK:
            return "mode"
        is_touched = before.mtime_ns != after.mtime_ns and before.kind == FILE
        return "times" if is_touched and not path.endswith("/index") else ""

    def _is_same_index(self, path: str, before: Node, after: Node) -> bool:
        """git writes its index anew for nothing but other inode numbers and times."""
        if before.kind != FILE or os.path.basename(path) != "index" or before.layer != "lower":
            return False
        if after.size > LARGEST_INDEX:
            return False
        now = self._lower.node(path)
        if now is None or now.digest != before.digest:
            return False
        return same_but_for_stat_data(self._lower.content(path), self._upper.content(path))

    # ---- what was before ----

    def _before(self, path: str, old: os.stat_result | None, *, is_replaced: bool) -> tuple[Node | None, int]:
        """What was before, and the ctime that tells when it was last changed."""
        known = self._previous.get(path)
        if known is not None:
            return known.before, 0
        if old is None:
            return None, 0
        if is_directory(old):
            if is_replaced:
                return self._lower.whole(path, old)
            return self._lower.bare_node(path, old), old.st_ctime_ns
        return self._lower.node_of(path, old), old.st_ctime_ns

    def _attributes(self, path: str, marks: Marks, before: Node | None) -> tuple[str, ...]:
        old = self._lower.attributes(path) if before is not None and self._lower.look(path) else {}
        names = {*marks.program, *old} - set(UNTOLD_ATTRIBUTES)
        return tuple(sorted(name for name in names if marks.program.get(name) != old.get(name)))

    # ---- what happened meanwhile ----

    def _judged(self, change: Change, changed: int, shared: str) -> Change:
        refused = self._refusal(change)
        known = self._previous.get(change.path)
        if known is not None:
            return replace(change, refused=refused, conflict=known.conflict, why=known.why)
        why = shared
        if self._t0 is not None and changed >= self._t0:
            why = "changed outside while the run was under way"
        return replace(change, refused=refused, conflict=DURING if why else "", why=why)

    def _refusal(self, change: Change) -> str:
        after = change.after
        for hidden in self._hidden:
            if is_at_or_below(change.path, hidden) or (
                change.before is not None and change.before.entries and is_at_or_below(hidden, change.path)
            ):
                return f"{hidden} is hidden from the jail, so it did not see what stands there"
        if after is None:
            return ""
        if after.kind not in (FILE, DIRECTORY, LINK):
            return f"a {after.kind} is not made"
        if after.kind == FILE and after.mode & SET_ID:
            return "it would run with the rights of its owner (set-uid or set-gid)"
        if after.kind == FILE and not after.digest:
            return "it cannot be read"
        return "extended attributes stay behind" if change.kind == "attributes" else ""

    def _why_not_the_same_directory(
        self, path: str, marks: Marks, behind: str | None, redirect: str | None
    ) -> str:
        """Whether a directory is another than the one that the run saw under this name."""
        if self._t0 is None or redirect is not None or path in self._previous or not marks.copied_up:
            return ""
        real = self._lower.look(behind) if behind is not None else None
        if behind is None or real is None or not is_directory(real):
            return f"the directory {path} was moved or removed outside while the run was under way"
        moved = f"the directory {path} was replaced outside while the run was under way"
        inode = marks.origin_inode
        if inode is not None:
            return moved if inode != real.st_ino & 0xFFFFFFFF else ""
        above = self._lower.look(os.path.dirname(behind))
        may_be = real.st_ctime_ns >= self._t0 and above is not None and above.st_mtime_ns >= self._t0
        return moved.replace("was", "may have been", 1) if may_be else ""

    def _told_apart(self, found: dict[str, Change]) -> dict[str, Change]:
        """A file that was copied up and has nothing below it was renamed inside, or is gone outside."""
        if self._t0 is None:
            return found
        gone = [c.before for c in found.values() if c.before is not None and not c.before.is_kind_of(c.after)]
        inodes = {node.inode & 0xFFFFFFFF for node in gone}
        digests = {node.digest for node in gone if node.digest}
        for path, inode in self._moved_in:
            change = found.get(path)
            if change is None or change.conflict or change.after is None:
                continue
            above = self._lower.look(os.path.dirname(path))
            is_renamed = inode in inodes or change.after.digest in digests
            # To remove or rename something changes the time of its directory.
            if not is_renamed and above is not None and above.st_mtime_ns >= self._t0:
                why = "removed or renamed outside while the run was under way"
                found[path] = replace(change, conflict=DURING, why=why)
        return found


def _without_idle(found: dict[str, Change]) -> list[Change]:
    """Without directories that were made anew and are as they were."""
    paths = sorted(found)

    def has_changes_below(path: str) -> bool:
        from bisect import bisect_left

        at = bisect_left(paths, f"{path}/")
        return at < len(paths) and paths[at].startswith(f"{path}/")

    def counts(change: Change) -> bool:
        before, after = change.before, change.after
        if change.kind != "replaced" or before is None or after is None:
            return True
        if (before.kind, after.kind) != (DIRECTORY, DIRECTORY):
            return True
        return before.mode != after.mode or bool(change.attributes) or has_changes_below(change.path)

    return [found[path] for path in _in_order(found) if counts(found[path])]


def _in_order(found: Mapping[str, Change]) -> Iterator[str]:
    yield from sorted(found, key=lambda path: path.split("/"))
