"""What happened in the lower directory after the seal: nothing, the same, or something else."""

from __future__ import annotations

from dataclasses import replace

from corral.changes.change import DIRECTORY, Change, Node
from corral.changes.trees import Tree, is_directory

AFTER = "after"


def standing(lower: Tree, path: str, like: Node | None) -> Node | None:
    """What stands there now, known in the way that ``like`` is: a directory that goes as a whole by all in it."""
    info = lower.look(path)
    if (
        info is not None
        and is_directory(info)
        and like is not None
        and like.kind == DIRECTORY
        and like.digest
    ):
        return lower.whole(path, info)[0]
    return None if info is None else lower.node_of(path, info, like)


def as_it_stands(change: Change, lower: Tree) -> Change | None:
    """The change with what conflicts with it now; None if there is nothing left to do."""
    now = standing(lower, change.path, change.before)
    before, after = change.before, change.after
    if before is not None and now is None and not change.conflict and lower.is_blocked(change.path):
        return replace(
            change, conflict=AFTER, why="a directory on its way was replaced outside since the run"
        )
    if _is_done(change, now):
        return None
    if change.conflict:
        return change
    why = _difference(before, after, now)
    return replace(change, conflict=AFTER, why=why) if why else change


def _is_done(change: Change, now: Node | None) -> bool:
    """Somebody, ourselves perhaps, already made it so."""
    after = change.after
    if after is None:
        return now is None
    if change.kind in ("times", "attributes") or now is None:
        return False
    if after.kind == DIRECTORY:
        is_same = now.kind == DIRECTORY and now.mode == after.mode
        return is_same and change.kind in ("added", "mode")
    return bool(after.digest) and after.equals(now)


def _difference(before: Node | None, after: Node | None, now: Node | None) -> str:
    if before is None:
        is_both_directories = now is not None and after is not None and {now.kind, after.kind} == {DIRECTORY}
        return "" if now is None or is_both_directories else "made outside since the run"
    if now is None:
        return "removed outside since the run"
    if now.kind != before.kind:
        return f"replaced outside since the run: it is a {now.kind} now"
    if now.is_same_as(before):
        return ""
    if before.kind == DIRECTORY and not before.digest:
        return "its mode was changed outside since the run" if now.mode != before.mode else ""
    if now.digest != before.digest or now.size != before.size or not now.digest:
        return "changed outside since the run"
    return "its mode was changed outside since the run" if now.mode != before.mode else ""
