"""Renames: a file that went and a file that came, with the same content."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from corral.changes.change import FILE, LINK, Change


def paired(changes: Iterable[Change]) -> list[Change]:
    """A deleted and an added file of the same content are one change, under the new name. Of several, the ones that
    keep their last name find each other first. A conflict or a refusal of one is one of both."""
    found = list(changes)
    gone: dict[tuple[str, str], list[Change]] = {}
    for change in found:
        before = change.before
        if change.kind == "deleted" and before is not None and before.kind in (FILE, LINK) and before.size:
            gone.setdefault((before.kind, before.digest), []).append(change)
    taken: dict[str, Change] = {}
    for change in found:
        after = change.after
        if change.kind != "added" or after is None or not after.digest:
            continue
        candidates = gone.get((after.kind, after.digest))
        if candidates:
            name = os.path.basename(change.path)
            candidates.sort(key=lambda c: os.path.basename(c.path) == name)
            taken[change.path] = candidates.pop()
    sources = {change.path for change in taken.values()}
    told = []
    for change in found:
        if change.path in sources:
            continue
        source = taken.get(change.path)
        told.append(change if source is None else _one(change, source))
    return told


def _one(added: Change, deleted: Change) -> Change:
    return replace(
        added,
        kind="renamed",
        before=deleted.before,
        source=deleted.path,
        conflict=added.conflict or deleted.conflict,
        why=added.why or deleted.why,
        refused=added.refused or deleted.refused,
    )


def parted(change: Change) -> list[Change]:
    """The deletion and the addition that a rename is made of."""
    if change.source is None:
        return [change]
    deleted = replace(change, path=change.source, kind="deleted", after=None, source=None, flags=())
    return [deleted, replace(change, kind="added", before=None, source=None)]
