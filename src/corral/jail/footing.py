"""Footing: what the compiled steps of an enclosure stand on, and whether it is still there.

Names to hide and the layers that hide them, the host's mounts, and where the granted places lie.
"""

from __future__ import annotations

import os
import select

from corral.jail import fence
from corral.jail.keptgrounds import KeptGrounds
from corral.jail.layer import Layer, make_layer
from corral.jail.site import find_masks, is_below, is_unchanged, stamp_of
from corral.jail.survey import Survey
from corral.paths.places import kernel_device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.site import Masks
    from corral.paths.places import Place
    from corral.policy import Policy


class Footing(Survey):
    """``inherits_streams``: it is for one run, which gets our own 0-2."""

    def __init__(
        self,
        policy: Policy,
        homes: tuple[str, ...],
        *,
        degraded: bool,
        prove: bool,
        inherits_streams: bool,
    ) -> None:
        super().__init__(policy, homes, degraded=degraded, prove=prove)
        self.inherits_streams = inherits_streams
        self.grounds = KeptGrounds()
        self._temp: Place | None = None
        self._masks: Masks | None = None
        self._layers: dict[str, Layer] = {}
        self._mounts = -1
        self._listed: tuple[tuple[str, int, int], ...] = ()

    def _stop_watching(self) -> None:
        if self._mounts >= 0:
            os.close(self._mounts)
            self._mounts = -1

    def _current_masks(self) -> Masks:
        if self._masks is None:
            taken = tuple(place.path for place in (*self.writable, *self.read_only))
            self._masks = find_masks(
                self.homes, self.hidden, self.policy.unhide, taken, as_root=self.host.is_root
            )
        return self._masks

    def _current_layers(self) -> dict[str, Layer]:
        if not self._layers and self._temp is not None and self.choice.backend == "namespaces":
            beside = os.path.dirname(self._temp.path)
            for home, names in self._current_masks().below_home.items():
                if self._is_exposed(beside, home):
                    continue  # made inside each run instead
                layer = make_layer(beside, home, names)
                if layer is not None:
                    self._layers[home] = layer
        return self._layers

    def _is_exposed(self, beside: str, home: str) -> bool:
        """A layer may not lie in what it covers (the kernel refuses), nor where a command can take names out of it."""
        places = (home, *(place.path for place in self.writable))
        return any(is_below(beside, place) or is_below(place, beside) for place in places)

    def _drop_layers(self) -> None:
        while self._layers:
            self._layers.popitem()[1].place.close()

    def _is_current(self) -> bool:
        if self.inherits_streams or self.choice.backend == "none":
            return True  # compiled once, run once
        if self.choice.backend == "landlock":
            seen = stamp_of(fence.listed_for_root()) if self.host.is_root else ()
            was, self._listed = self._listed, seen
            return was == seen
        if self._mounts < 0:
            self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            self._watch = select.poll()
            self._watch.register(self._mounts, select.POLLPRI | select.POLLERR)
            self._watch.poll(0)
            return False
        if self._watch.poll(0):
            return False
        whole = all(layer.is_whole() for layer in self._layers.values()) and self._is_unmoved()
        return whole and (self._masks is None or is_unchanged(self._masks.stamp))

    def _is_unmoved(self) -> bool:
        """Whether each place is still where it was pinned: a scene would go on showing what was moved away. A plan
        without one compares them itself, and refuses."""
        if not self.grounds:
            return True
        for place in (*self.writable, *self.read_only):
            try:
                info = os.stat(place.path, follow_symlinks=False)
            except OSError:
                return False
            if (info.st_ino, kernel_device(info.st_dev)) != (place.inode, place.device):
                return False
        return True
