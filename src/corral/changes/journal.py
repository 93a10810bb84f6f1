"""The journal: several changes land together or not at all.

Everything new is made first, under names of ours beside the targets, and only then moved into place; what was there
keeps living under our name until the last move is made. Each step can be undone by moving back. The journal says
where it stands; a call that finds one left by a killed process undoes it, or, once all moves are made, finishes it.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from corral.changes import moves
from corral.changes.layers import Layers, write_whole
from corral.changes.marker import JOURNAL
from corral.changes.removal import remove
from corral.changes.staging import copy_entry
from corral.changes.trees import Tree
from corral.errors import Refused
from corral.paths.opening import PATH_BYTES
from corral.paths.parents import Parent

PREFIX = ".corral-apply-"
STAGING, MOVING, MOVED = "staging", "moving", "moved"
ASIDE = "aside"


@dataclass
class Step:
    """``action``: put, remove, mode or times. ``name``: ours, beside the target. ``staged`` and ``before``: inodes of
    what is to come and of what was there (0: nothing). ``prior`` and ``value``: a mode or a time and its new one."""

    action: str
    path: str
    name: str
    staged: int = 0
    before: int = 0
    size: int = 0
    mtime_ns: int = 0
    staged_size: int = 0
    staged_mtime_ns: int = 0
    listing: str = ""
    prior: int = 0
    value: int = 0
    early: bool = False


@dataclass
class Journal:
    """``settled``: paths of the changes that are no more when this is done. ``partial``: of those of which a part was
    applied. ``aside``: what is kept although it is replaced, because somebody else wrote it."""

    steps: list[Step]
    settled: list[str]
    partial: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    began: str = field(default_factory=lambda: time.strftime("%Y%m%d-%H%M%S"))
    state: str = STAGING

    def save(self, layers: Layers) -> None:
        write_whole(layers.in_sealed(JOURNAL), json.dumps(asdict(self)).encode())


def load(layers: Layers) -> Journal | None:
    try:
        with open(layers.in_sealed(JOURNAL), encoding="utf-8") as file:
            told: dict[str, Any] = json.load(file)
        steps = [Step(**step) for step in told.pop("steps")]
        return Journal(steps, **told)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        where = layers.in_sealed(JOURNAL)
        raise Refused(
            f"{where} cannot be read, so an apply that was interrupted cannot be undone: look for names that begin "
            f"with {PREFIX} in {layers.lower}, then remove it",
            path=where,
            rule="journal",
        ) from None


# ---- going forward ----


def carry_out(
    layers: Layers,
    lower: Tree,
    journal: Journal,
    stage: Callable[[Step], None],
    finish: Callable[[Journal], None],
) -> None:
    """Stage, move, finish. Whatever fails before the last move undoes all of it."""
    journal.save(layers)
    try:
        for step in journal.steps:
            if step.early:
                _move(lower, step)
        for step in journal.steps:
            if step.action == "put":
                stage(step)
                _note_staged(lower, step)
        moves.sync(lower)
        journal.state = MOVING
        journal.save(layers)
        for step in journal.steps:
            if not step.early:
                _move(lower, step)
        moves.sync(lower)
        journal.state = MOVED
        journal.save(layers)
    except BaseException:
        undo(layers, lower, journal)
        raise
    finish(journal)


def _move(lower: Tree, step: Step) -> None:
    with lower.anchor.parent(step.path) as parent:
        if step.action == "mode":
            moves.change_mode(parent, step.value)
        elif step.action == "times":
            os.utime(parent.name, ns=(step.value, step.value), dir_fd=parent.fd, follow_symlinks=False)
        elif step.action == "remove":
            moves.rename_to_new(parent, parent.name, step.name)
            _verify(lower, step, step.name)
        elif step.before:
            _verify(lower, step, moves.swap(parent, step.name))
        else:
            moves.rename_to_new(parent, step.name, parent.name)


def _verify(lower: Tree, step: Step, name: str) -> None:
    """What we took away is what was looked at before; the last moment in which somebody could have come between."""
    with lower.anchor.parent(step.path) as parent:
        info = os.stat(name, dir_fd=parent.fd, follow_symlinks=False)
    is_same = info.st_ino == step.before
    if is_same and stat.S_ISDIR(info.st_mode):
        path = os.path.join(os.path.dirname(step.path), name)
        is_same = not step.listing or lower.whole(path, info)[0].digest == step.listing
    elif is_same:
        is_same = (info.st_size, info.st_mtime_ns) == (step.size, step.mtime_ns)
    if not is_same:
        raise moves.conflict(step.path)


def _note_staged(lower: Tree, step: Step) -> None:
    with lower.anchor.parent(step.path) as parent:
        info = os.stat(step.name, dir_fd=parent.fd, follow_symlinks=False)
    step.staged, step.staged_size, step.staged_mtime_ns = info.st_ino, info.st_size, info.st_mtime_ns


# ---- going back ----


def undo(layers: Layers, lower: Tree, journal: Journal) -> None:
    """As it was before, from wherever it stopped; may be done twice."""
    for step in reversed(journal.steps):
        try:
            with lower.anchor.parent(step.path) as parent:
                _undo_step(layers, lower, journal, step, parent)
        except (FileNotFoundError, NotADirectoryError):
            continue  # its directory is gone, and what was in it with it
    moves.sync(lower)
    end(layers)


def _undo_step(layers: Layers, lower: Tree, journal: Journal, step: Step, parent: Parent) -> None:
    if step.action == "mode":
        if journal.state == MOVING or step.early:
            moves.change_mode(parent, step.prior)
        return
    if step.action == "times":
        if journal.state == MOVING and moves.inode_at(parent, parent.name) == step.before:
            times = (step.prior, step.prior)
            os.utime(parent.name, ns=times, dir_fd=parent.fd, follow_symlinks=False)
        return
    at_target = moves.inode_at(parent, parent.name)
    if step.before:
        for ours in (step.name, moves.old_name(step.name)):
            if moves.inode_at(parent, ours) != step.before or at_target == step.before:
                continue
            if not at_target:
                moves.rename_to_new(parent, ours, parent.name)
            elif at_target == step.staged:
                _keep_if_touched(layers, lower, journal, step)
                moves.swap_back(parent, ours)
            else:  # somebody put something else there since
                _keep_aside(layers, lower, journal, step.path, ours)
                remove(parent.fd, ours)
    elif step.staged and at_target == step.staged and journal.state == MOVING:
        _keep_if_touched(layers, lower, journal, step)
        moves.rename_to_new(parent, parent.name, step.name)
    for ours in (step.name, moves.old_name(step.name)):
        if moves.inode_at(parent, ours) != step.before or not step.before:
            remove(parent.fd, ours)


def _keep_if_touched(layers: Layers, lower: Tree, journal: Journal, step: Step) -> None:
    """What we put there and are about to take back, if somebody worked on it since."""
    info = lower.look(step.path)
    if info is None:
        return
    if stat.S_ISDIR(info.st_mode):
        saved = os.stat(layers.in_sealed(JOURNAL)).st_mtime_ns
        is_touched = any(inner.st_ctime_ns > saved for _, inner in lower.below(step.path))
    else:
        is_touched = (info.st_size, info.st_mtime_ns) != (step.staged_size, step.staged_mtime_ns)
    if is_touched:
        _keep_aside(layers, lower, journal, step.path, os.path.basename(step.path))


def _keep_aside(layers: Layers, lower: Tree, journal: Journal, path: str, name: str) -> str:
    """A copy of what we are about to remove, in a directory of ours. Done once."""
    target = layers.in_sealed(ASIDE, journal.began, path)
    if not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
        new = f"{target}.new"
        directory = os.open(os.path.dirname(target), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            remove(directory, os.path.basename(new))
            copy_entry(lower, os.path.join(os.path.dirname(path), name), directory, os.path.basename(new))
        finally:
            os.close(directory)
        os.rename(new, target)
    return target


# ---- the end ----


def clean_up(layers: Layers, lower: Tree, journal: Journal) -> list[str]:
    """Remove what was replaced; what somebody else wrote is kept aside first. Returns where."""
    kept = []
    for step in journal.steps:
        if step.action in ("mode", "times"):
            continue
        try:
            with lower.anchor.parent(step.path) as parent:
                for ours in (step.name, moves.old_name(step.name)):
                    if step.path in journal.aside and moves.inode_at(parent, ours):
                        kept.append(_keep_aside(layers, lower, journal, step.path, ours))
                    remove(parent.fd, ours)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return kept


def end(layers: Layers) -> None:
    """Nothing is left to do."""
    os.unlink(layers.in_sealed(JOURNAL))


def recover(layers: Layers) -> list[str]:
    """What a killed apply left is undone, or finished if all of it was in place already. By whoever is alone."""
    journal = load(layers)
    if journal is None:
        return []
    with Tree(layers.lower, "lower") as lower:
        if journal.state != MOVED:
            undo(layers, lower, journal)
            return ["an apply was interrupted; what it had done is undone"]
        from corral.changes.applying import finish

        finish(layers, journal)
        return ["an apply was interrupted after its last step; it is finished now"]


def names(count: int) -> Iterable[str]:
    """Names of ours that nothing else has. Not those of the file layer, which sweeps its own away."""
    token = os.urandom(6).hex()
    return (f"{PREFIX}{token}-{n}" for n in range(count))


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Modes of directories after all that happens in them, the innermost first."""
    return sorted(steps, key=lambda step: -step.path.count("/") if step.action == "mode" else -PATH_BYTES)
