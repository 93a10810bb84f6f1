"""The seal: what was before and what is now, written down when the last run ends. A diff needs a base, and an
overlay keeps none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from corral.changes.change import Change
from corral.changes.comparing import Comparison
from corral.changes.conflicts import as_it_stands
from corral.changes.kept import forget_all_but, keep
from corral.changes.later import flagged
from corral.changes.layers import Layers, lock_alone, open_lock, write_whole
from corral.changes.marker import JOURNAL, RUN, Run, read_run
from corral.changes.renames import paired
from corral.changes.trees import Tree
from corral.changes.upper import Upper
from corral.paths.sensitive import kind_of_file_system

RECORD = "record.json"
VERSION = 1
# File systems that are changed from elsewhere, by another clock: NFS, CIFS, SMB 2, 9p, FUSE, Ceph, AFS, Coda.
ELSEWHERE = {0x6969, 0xFF534D42, 0xFE534D42, 0x01021997, 0x65735546, 0x00C36400, 0x5346414F, 0x73757245}
NO_RUN = "when the run began is not known"


@dataclass
class Record:
    """What stands on disk: every path in the upper directory, as it was compared when it was sealed."""

    changes: list[Change] = field(default_factory=list)
    hidden: tuple[str, ...] = ()

    def by_path(self) -> dict[str, Change]:
        return {change.path: change for change in self.changes}

    def save(self, layers: Layers) -> None:
        told = {
            "version": VERSION,
            "hidden": self.hidden,
            "changes": [change.to_dict() for change in self.changes],
        }
        write_whole(layers.in_sealed(RECORD), json.dumps(told).encode())


def load_record(layers: Layers) -> Record | None:
    """None if there is none, or none that can be read: then everything is doubtful, and nothing is lost."""
    try:
        with open(layers.in_sealed(RECORD), encoding="utf-8") as file:
            told = json.load(file)
        return Record([Change.from_dict(row) for row in told["changes"]], tuple(told["hidden"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True)
class Survey:
    """The changes as they stand now, and what a person should know about how that was found out."""

    changes: list[Change]
    notes: list[str]
    running: bool = False


def seal(layers: Layers) -> bool:
    """When a run has ended. False, and nothing done, if another one goes on in the same layers."""
    fd = open_lock(layers)
    try:
        if not lock_alone(fd):
            return False
        if read_run(layers) is not None:
            seal_now(layers)
        return True
    finally:
        os.close(fd)


def seal_now(layers: Layers) -> Record:
    """By whoever holds the lock alone. If it comes late, everything until now counts as during the run."""
    previous = load_record(layers)
    run = read_run(layers)
    record = _compared(layers, run, previous)
    with Tree(layers.lower, "lower") as lower:
        for change in record.changes:
            if change.before is not None and not change.conflict and not change.is_directory:
                keep(layers, lower, change.before, change.path)
    record.save(layers)
    if run is not None:
        os.unlink(layers.in_sealed(RUN))
    forget_all_but(layers, record.changes)
    return record


def _compared(layers: Layers, run: Run | None, previous: Record | None) -> Record:
    known = previous.by_path() if previous is not None else {}
    hidden = tuple(sorted({*(previous.hidden if previous else ()), *(run.hidden if run else ())}))
    if not os.path.isdir(layers.upper):
        return Record([], hidden)
    with Tree(layers.lower, "lower") as lower, Upper(layers.upper, layers.attributes) as upper:
        doubt = run.doubt() if run is not None else NO_RUN
        if not doubt and kind_of_file_system(lower.anchor.fd) in ELSEWHERE:
            doubt = "the directory is on a network file system, whose clock is another one"
        found = Comparison(lower, upper, run.t0 if run is not None else None, known, hidden).changes()
        changes = [_doubted(change, doubt, known) for change in found]
        return Record([flagged(change, lower, upper) for change in changes], hidden)


def _doubted(change: Change, doubt: str, known: dict[str, Change]) -> Change:
    if not doubt or change.path in known or change.before is None or change.conflict:
        return change
    return replace(change, conflict="doubt", why=f"{doubt}, so it may have been changed outside meanwhile")


def list_changes(layers: Layers) -> list[Change]:
    return survey(layers).changes


def survey(layers: Layers) -> Survey:
    """What there is, sealed first if the run was killed before anybody did. While a run goes on: as it stands."""
    if not os.path.isdir(layers.sealed) and not os.path.isdir(layers.upper):
        return Survey([], [])
    fd = open_lock(layers)
    try:
        if not lock_alone(fd):
            record = _compared(layers, read_run(layers), load_record(layers))
            note = "something still runs here: this is how it stands at the moment"
            return Survey(current(layers, record.changes), [note], running=True)
        record, notes = settled_record(layers)
        return Survey(current(layers, record.changes), notes)
    finally:
        os.close(fd)


def settled_record(layers: Layers) -> tuple[Record, list[str]]:
    """By whoever holds the lock alone: what was left half way is finished or undone, what was not sealed is."""
    notes: list[str] = []
    if os.path.exists(layers.in_sealed(JOURNAL)):
        from corral.changes.journal import recover

        notes += recover(layers)
    if read_run(layers) is not None:
        notes.append("the last run was not sealed (it was killed); it is now")
        return seal_now(layers), notes
    record = load_record(layers)
    return record if record is not None else seal_now(layers), notes


def current(layers: Layers, changes: Iterable[Change]) -> list[Change]:
    """Compared with what stands in the lower directory now, and renames found."""
    with Tree(layers.lower, "lower") as lower:
        found = (as_it_stands(change, lower) for change in changes)
        return paired(change for change in found if change is not None)
