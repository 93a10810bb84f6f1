"""Discard: changes are thrown away; the real directory was never touched."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from corral.changes.alone import alone
from corral.changes.applying import replace_record
from corral.changes.change import Change, selects
from corral.changes.clearing import clear, clear_all
from corral.changes.kept import forget_all_but
from corral.changes.layers import Layers
from corral.changes.patch import pieces
from corral.changes.renames import paired, parted
from corral.changes.sealing import RECORD, Record, settled_record
from corral.changes.trees import Tree
from corral.changes.upper import Upper
from corral.errors import PolicyError


def discard(layers: Layers, paths: Sequence[str] | None = None, *, keep: str | None = None) -> list[Change]:
    """Returns what is no more. ``keep``: a file that gets a patch of it first, which must not be there yet."""
    with alone(layers, "discard"):
        record, _ = settled_record(layers)
        changes = paired(record.changes)
        for path in paths or ():
            if not any(selects([path], change) for change in changes):
                raise PolicyError(f"nothing is changed at {path or '.'}", path=path)
        chosen = [change for change in changes if selects(paths, change)]
        if keep is not None:
            _keep(layers, chosen, keep)
        if not os.path.isdir(layers.upper):
            return []
        with Tree(layers.lower, "lower") as lower, Upper(layers.upper, layers.attributes) as upper:
            if paths is None:
                clear_all(upper)
                _forget(layers)
            else:
                gone = {part.path: part for change in chosen for part in parted(change)}
                rest = [change for change in record.changes if change.path not in gone]
                clear(lower, upper, list(gone.values()), rest)
                replace_record(layers, record, rest)
        return chosen


def _forget(layers: Layers) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(layers.in_sealed(RECORD))
    forget_all_but(layers, [])
    Record().save(layers)


def _keep(layers: Layers, changes: Sequence[Change], path: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror}; nothing was discarded", path=path) from None
    with open(fd, "wb") as file:
        for piece in pieces(layers, changes, whole=True):
            file.write(piece)
        file.flush()
        os.fsync(fd)
