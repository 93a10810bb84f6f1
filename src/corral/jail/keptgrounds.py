"""Grounds that an environment keeps.

Each has the whole scene set, serves one run at a time, and goes when what it shows is no longer what is there.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.ground import Ground

MOST = 32  # runs at once that need not set their own scene


class KeptGrounds:
    """Not locked: whoever has it sees to that."""

    def __init__(self) -> None:
        self.idle: list[Ground] = []
        self.generation = 0  # of what they show
        self._born: dict[Ground, int] = {}  # all that are there, idle or in use, by the generation they show
        self._wanted = 0
        self._made = 0

    def __contains__(self, ground: Ground | None) -> bool:
        return ground in self._born

    def __bool__(self) -> bool:
        return bool(self._born)

    def reserve(self) -> bool:
        """Whether another one is to be made now. The first run makes its own: many an environment has only one."""
        self._wanted += 1
        if self._wanted == 1 or self._made == MOST:
            return False
        self._made += 1
        return True

    def add(self, ground: Ground | None, generation: int) -> None:
        """What came of a reservation; None: it failed, and would for the next run as well."""
        if ground is None:
            self._made = MOST
        else:
            self._born[ground] = generation

    def give_back(self, ground: Ground) -> bool:
        """True if it is kept; otherwise it is the caller's to close, since what it shows is not what is there now."""
        if self._born.get(ground) == self.generation:
            self.idle.append(ground)
            return True
        self._born.pop(ground, None)
        return False

    def forget(self) -> None:
        """What they show has changed. Those in use go when they are given back."""
        self.generation += 1
        self._made = 0
        while self.idle:
            ground = self.idle.pop()
            self._born.pop(ground, None)
            ground.close()
