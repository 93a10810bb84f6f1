"""The same call again and again: an agent that is stuck, whatever it is allowed to run."""

from __future__ import annotations

from collections.abc import Mapping

from corral.errors import PolicyError

LIMIT = 5


class DoomLoop:
    """Counts identical calls in a row. `stops`: past `limit` they are refused; otherwise they are only warned of.

    The host notes every call of every tool here, not commands alone: a test run after each edit is no loop.
    """

    def __init__(self, limit: int = LIMIT, *, stops: bool = True) -> None:
        if limit < 1:
            raise PolicyError(f"a loop needs at least one call, not {limit}")
        self.limit = limit
        self.stops = stops
        self.count = 0
        self._last: tuple[str, str] | None = None

    def note(self, tool: str, arguments: Mapping[str, object]) -> bool:
        """One more call. Whether it is the same as the last `limit` ones; the order of its arguments does not count."""
        import json

        call = (tool, json.dumps(arguments, sort_keys=True, default=repr))
        self.count = self.count + 1 if call == self._last else 1
        self._last = call
        return self.count > self.limit
