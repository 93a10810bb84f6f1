"""Grounds that an environment keeps.

Each has the whole scene set, serves one run at a time, and goes when what it shows is no longer what is there, or when
a run left something in its shared memory.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.ground import Ground

    # Size, links and mode of each place.
    Look = list[tuple[int, int, int]]

MOST = 32  # runs at once that need not set their own scene


class KeptGrounds:
    """For many threads. Its lock is never held for long: an event loop may be the one that gives a ground back."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self.idle: list[Ground] = []
        self.generation = 0  # of what they show
        # All that are there, idle or in use: the generation they show, and what they were like when they were made.
        self._born: dict[Ground, tuple[int, Look]] = {}
        self._wanted = 0
        self._made = 0

    def __contains__(self, ground: Ground | None) -> bool:
        return ground in self._born

    def __bool__(self) -> bool:
        return bool(self._born)

    def take(self) -> Ground | None:
        with self._lock:
            return self.idle.pop() if self.idle else None

    def reserve(self) -> bool:
        """Whether another one is to be made now. The first run makes its own: many an environment has only one."""
        with self._lock:
            self._wanted += 1
            if self._wanted == 1 or self._made == MOST:
                return False
            self._made += 1
            return True

    def add(self, ground: Ground | None, generation: int) -> None:
        """What came of a reservation; None: it failed, and would for the next run as well."""
        with self._lock:
            if ground is None:
                self._made = MOST
            else:
                self._born[ground] = generation, _look_at(ground)

    def give_back(self, ground: Ground) -> None:
        look = _look_at(ground)
        with self._lock:
            generation, made = self._born.get(ground, (-1, look))
            if generation == self.generation and look == made:
                self.idle.append(ground)
                return
            self._made -= generation == self.generation
            self._born.pop(ground, None)
        ground.close()

    def forget(self) -> None:
        """What they show has changed, or the environment is closed. Those in use go when they are given back."""
        with self._lock:
            self.generation += 1
            self._made = 0
            gone, self.idle = self.idle, []
            for ground in gone:
                self._born.pop(ground, None)
        for ground in gone:
            ground.close()


def _look_at(ground: Ground) -> Look:
    """How its shared memory looks from outside, the only place of its own that a run may write to. (Each name adds to
    the size of a directory in memory, and nothing but its removal takes that away.)"""
    return [(info.st_size, info.st_nlink, info.st_mode) for info in (os.fstat(fd) for _, fd in ground.places)]
