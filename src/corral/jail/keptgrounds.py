"""Grounds that an environment keeps.

Each has the whole scene set, serves one run at a time, and goes when what it shows is no longer what is there.
"""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.ground import Ground

MOST = 32  # runs at once that need not set their own scene


class KeptGrounds:
    """For many threads. Its lock is never held for long: an event loop may be the one that gives a ground back."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self.idle: list[Ground] = []
        self.generation = 0  # of what they show
        self._born: dict[Ground, int] = {}  # all that are there, idle or in use, by the generation they show
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
                self._born[ground] = generation

    def give_back(self, ground: Ground) -> None:
        with self._lock:
            if self._born.get(ground) == self.generation:
                self.idle.append(ground)
                return
            self._born.pop(ground, None)
        ground.close()  # what it shows is not what is there now

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
