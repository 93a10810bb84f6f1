"""Alone: while changes are applied or discarded, nobody runs in the layers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from corral.changes.layers import Layers, lock_alone, open_lock
from corral.errors import Refused


@contextlib.contextmanager
def alone(layers: Layers, what: str) -> Iterator[None]:
    """Nobody runs in these layers, and nobody else changes them, until this is left."""
    fd = open_lock(layers)
    try:
        if not lock_alone(fd):
            raise Refused(
                f"something still runs in this jail; {what} when it has ended",
                path=layers.lower,
                rule="running",
                grant="corral down",
            )
        yield
    finally:
        os.close(fd)
