"""Keeping: a named jail is entered before its first run, and what was changed in its copies is recorded after its last.

The record says what each changed file was before (see ``corral.changes``); it is made by whoever leaves last.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.changes import Layers
    from corral.jail.enclosure import Enclosure


class Keeping:
    """From before the first run to after the last one of this process. Harmless where no jail is named."""

    def __init__(self, enclosure: Enclosure, began: Callable[[], None] = lambda: None) -> None:
        self._locks: list[int] = []
        self.layers = layers_of(enclosure)
        try:
            for layers in self.layers:
                from corral.changes import begin

                self._locks.append(begin(layers, _hidden_below(enclosure, layers.lower)))
            enclosure.enter_stage(began)
        except BaseException:
            self._unlock()
            raise

    def close(self) -> None:
        """After the enclosure is closed: nothing of ours holds the layers any more."""
        if not self._locks:
            return
        self._unlock()
        from corral.changes import end_untouched

        for layers in self.layers:
            if not end_untouched(layers):
                from corral.changes import seal

                seal(layers)

    def _unlock(self) -> None:
        while self._locks:
            os.close(self._locks.pop())


def layers_of(enclosure: Enclosure) -> list[Layers]:
    """What this enclosure copies: home first, then the workspace under review."""
    jail = enclosure.jail
    if jail is None:
        return []
    from corral.changes import Layers

    found = []
    if enclosure.home is not None and enclosure.home.copied:
        found.append(Layers(enclosure.home.place.path, jail.part("changes"), jail.part("sealed")))
    if enclosure.review is not None:
        parts = jail.part("review/changes"), jail.part("review/sealed")
        found.append(Layers(enclosure.root.path, *parts, enclosure.review.marks))
    return found


def _hidden_below(enclosure: Enclosure, top: str) -> list[str]:
    return [path[len(top) + 1 :] for path in enclosure.hidden_paths() if path.startswith(top + "/")]
