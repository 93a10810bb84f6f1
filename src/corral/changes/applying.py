"""Apply: changes land in the real directory, all that are chosen or none of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corral.changes.alone import alone
from corral.changes.change import DIRECTORY, FILE, LINK, Change, Node, selects
from corral.changes.clearing import clear, clear_all
from corral.changes.conflicts import as_it_stands, standing
from corral.changes.contents import Contents
from corral.changes.journal import Journal, Step, carry_out, clean_up, end, in_order, names
from corral.changes.kept import forget_all_but, is_text, keep_content
from corral.changes.layers import Layers
from corral.changes.renames import parted
from corral.changes.sealing import Record, current, load_record, settled_record
from corral.changes.staging import StagedDirectory, normal_mode, stage_file, stage_link
from corral.changes.trees import Tree
from corral.changes.upper import Upper
from corral.errors import ChangeConflict, CorralError, PolicyError, Refused

SHOWN = 10

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Applied:
    """``left``: what was chosen and stays behind, with the reason. ``aside``: where the versions are kept that were
    overwritten although somebody outside had changed them."""

    applied: list[Change] = field(default_factory=list)
    left: list[tuple[Change, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)


def apply(
    layers: Layers,
    paths: Sequence[str] | None = None,
    *,
    exact: Collection[str] | None = None,
    allow_exec: bool = False,
    overwrite: Sequence[str] = (),
    partial: Mapping[str, bytes] | None = None,
    progress: Progress | None = None,
) -> Applied:
    """``paths``: these, and what is below them; None: all. ``exact``: the changes of just these paths instead. What
    runs later needs its own name among them, or ``allow_exec``. ``overwrite``: paths of
    conflicts that are applied nevertheless. ``partial``: of a file only this content, some of its hunks."""
    with alone(layers, "apply"):
        record, notes = settled_record(layers)
        changes = current(layers, record.changes)
        chosen, left = choose(changes, paths, exact=exact, allow_exec=allow_exec)
        _refuse_conflicts([c for c in chosen if c.conflict and not selects(tuple(overwrite), c)])
        if not chosen:
            _clear_if_idle(layers, record)
            return Applied([], left, notes)
        with Contents(layers) as contents:
            work = _Work(layers, contents, chosen, dict(partial or {}), progress)
            try:
                aside = work.carry_out()
            except OSError as error:
                if isinstance(error, CorralError):
                    raise
                what = f"{error.filename}: " if error.filename else ""
                raise Refused(f"{what}{error.strerror}; nothing was applied", rule="apply") from None
        return Applied(chosen, left, notes, aside)


def _clear_if_idle(layers: Layers, record: Record) -> None:
    """What was copied up and never changed, or is settled, is kept for nothing."""
    if not record.changes and os.path.isdir(layers.upper):
        with Upper(layers.upper, layers.attributes) as upper:
            clear_all(upper)


def choose(
    changes: Sequence[Change],
    paths: Sequence[str] | None,
    *,
    exact: Collection[str] | None = None,
    allow_exec: bool,
) -> tuple[list[Change], list[tuple[Change, str]]]:
    """What is to be applied, with the directories it needs, and what stays behind."""
    for path in paths or ():
        if not any(selects([path], change) for change in changes):
            raise PolicyError(f"nothing is changed at {path or '.'}", path=path)
    left: list[tuple[Change, str]] = []
    chosen: dict[str, Change] = {}
    named = {*(paths or ()), *(exact or ())}
    for change in changes:
        if not (selects(paths, change) if exact is None else change.path in exact):
            continue
        if change.refused:
            left.append((change, change.refused))
        elif change.runs_later and not allow_exec and change.path not in named:
            left.append((change, f"runs later: {change.flags[0].reason}; name it, or --allow-exec"))
        else:
            chosen[change.path] = change
    by_path = {change.path: change for change in changes}
    for path in list(chosen):
        for above in _directories_above(path):
            needed = by_path.get(above)
            if chosen[path].after is None or needed is None or not _makes_directory(needed):
                continue
            if needed.refused:
                left.append((chosen.pop(path), f"its directory is not applied: {needed.refused}"))
                break
            chosen.setdefault(above, needed)
    return [chosen[path] for path in sorted(chosen, key=lambda path: path.split("/"))], left


def _makes_directory(change: Change) -> bool:
    is_new = change.before is None or change.before.kind != DIRECTORY
    return is_new and change.after is not None and change.after.kind == DIRECTORY


def _directories_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _refuse_conflicts(conflicts: list[Change]) -> None:
    if not conflicts:
        return
    told = [f"{change.path} ({change.why})" for change in conflicts[:SHOWN]]
    told += [f"and {len(conflicts) - SHOWN} more"] if len(conflicts) > SHOWN else []
    raise ChangeConflict(
        f"nothing was applied: {'; '.join(told)}. See `corral changes diff`; name the other paths, "
        "or --overwrite these",
        path=conflicts[0].path,
        rule="seal",
        grant=f"corral changes apply --overwrite {conflicts[0].path}",
    )


class _Work:
    """One invocation: the steps for what was chosen, and how each thing is made."""

    def __init__(
        self,
        layers: Layers,
        contents: Contents,
        chosen: list[Change],
        partial: dict[str, bytes],
        progress: Progress | None,
    ) -> None:
        self._layers = layers
        self._contents = contents
        self._lower = contents.lower
        self._chosen = chosen
        self._partial = partial
        self._progress = progress
        self._done = 0
        self._made: dict[str, Change | StagedDirectory] = {}

    def carry_out(self) -> list[str]:
        raw = [part for change in self._chosen for part in parted(change)]
        steps = in_order(self._steps(raw))
        for step, name in zip(steps, names(len(steps)), strict=True):
            step.name = name
        journal = Journal(
            steps,
            settled=[change.path for change in raw if change.path not in self._partial],
            partial=sorted(self._partial),
            aside=[change.path for change in raw if change.conflict],
        )
        aside: list[str] = []
        carry_out(
            self._layers,
            self._lower,
            journal,
            self._stage,
            lambda journal: aside.extend(finish(self._layers, journal)),
        )
        return aside

    def _tick(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, len(self._chosen))

    # ---- planning ----

    def _steps(self, raw: list[Change]) -> list[Step]:
        steps: list[Step] = []
        top = ""
        below: list[Change] = []
        for change in sorted(raw, key=lambda change: change.path.split("/")):
            if top and change.path.startswith(f"{top}/") and change.after is not None:
                below.append(change)
                continue
            step = self._step(change)
            if step is None:
                continue
            if step.action == "put" and change.after is not None and change.after.kind == DIRECTORY:
                top, below = change.path, []
                tree_of = self._contents.tree_of
                self._made[change.path] = StagedDirectory(tree_of, change, below, self._partial, self._tick)
            elif step.action == "put":
                self._made[change.path] = change
            steps.append(step)
        return steps

    def _step(self, change: Change) -> Step | None:
        now = standing(self._lower, change.path, change.before)
        after = change.after
        step = Step("put", change.path, "")
        if now is not None:
            step.before, step.size, step.mtime_ns = now.inode, now.size, now.mtime_ns
            step.listing = self._listing(change.path, now)
        if after is None:
            step.action = "remove"
            return step if now is not None else None
        if now is not None and now.kind == after.kind == DIRECTORY:
            mode = normal_mode(after, now)
            is_early = not now.mode & 0o200
            return None if mode == now.mode else _mode_step(step, now, mode, early=is_early)
        if change.kind == "mode" and now is not None:
            return _mode_step(step, now, normal_mode(after, now), early=False)
        if change.kind == "times" and now is not None:
            step.action, step.prior, step.value = "times", now.mtime_ns, after.mtime_ns
        return step

    def _listing(self, path: str, now: Node) -> str:
        """Of a directory that goes, whatever the change says it was: nothing that came meanwhile is lost."""
        if now.kind != DIRECTORY:
            return ""
        info = self._lower.look(path)
        return now.digest or (self._lower.whole(path, info)[0].digest if info is not None else "")

    # ---- making ----

    def _stage(self, step: Step) -> None:
        made = self._made[step.path]
        with self._lower.anchor.parent(step.path) as parent:
            if isinstance(made, StagedDirectory):
                made.make(parent, step.name)
                return
            after = made.after
            assert after is not None
            tree = self._contents.tree_of(after)
            if after.kind == LINK:
                stage_link(tree, after, parent.fd, step.name)
            else:
                old = os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False) if step.before else None
                stage_file(tree, made, parent, step.name, old, self._partial.get(step.path))
        self._tick()


def _mode_step(step: Step, now: Node, mode: int, *, early: bool) -> Step:
    step.action, step.prior, step.value, step.early = "mode", now.mode, mode, early
    return step


# ---- the end ----


def finish(layers: Layers, journal: Journal) -> list[str]:
    """After the last move: the replaced goes, the upper directory and the record forget what is applied. May be
    done twice. Returns where overwritten versions are kept."""
    record = load_record(layers) or Record()
    with Tree(layers.lower, "lower") as lower, Upper(layers.upper, layers.attributes) as upper:
        aside = clean_up(layers, lower, journal)
        settled = set(journal.settled)
        gone = [change for change in record.changes if change.path in settled]
        rest = [change for change in record.changes if change.path not in settled]
        kept: list[Change] = []
        for change in rest:
            following = _after_a_part(layers, lower, change) if change.path in journal.partial else change
            if following is None:
                gone.append(change)
            else:
                kept.append(following)
        if kept:
            clear(lower, upper, gone, kept)
        else:
            clear_all(upper)
    replace_record(layers, record, kept)
    end(layers)
    return aside


def replace_record(layers: Layers, record: Record, changes: list[Change]) -> None:
    Record(changes, record.hidden).save(layers)
    forget_all_but(layers, changes)


def _after_a_part(layers: Layers, lower: Tree, change: Change) -> Change | None:
    """What is left of a file of which some hunks were applied: what was before is now what stands there."""
    now = lower.node(change.path)
    if now is None:
        return change
    content = lower.content(change.path)
    if is_text(content):
        keep_content(layers, content)
    kind = "modified" if change.kind == "added" else change.kind
    return as_it_stands(replace(change, kind=kind, before=now, conflict="", why=""), lower)


def is_plain_file(change: Change) -> bool:
    """Whether hunks can be chosen from it."""
    before, after = change.before, change.after
    return (
        after is not None
        and after.kind == FILE
        and (before is None or before.kind == FILE)
        and change.kind in ("added", "modified")
    )
